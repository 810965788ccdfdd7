"""Two DAGs joined by an asset: when ``make_prices`` has updated the asset, ``use_prices`` runs, whatever the time is.

Unpause both and trigger ``make_prices``. The second DAG's run shows which event started it.
"""

import pendulum
from airflow.sdk import DAG, Asset, Metadata, task

prices = Asset(name="example_prices", uri="file:///tmp/example_prices.csv", group="examples")
START = pendulum.datetime(2026, 1, 1, tz="UTC")

with DAG(
    dag_id="make_prices",
    description="Updates the asset example_prices",
    doc_md=__doc__,
    schedule="@hourly",
    start_date=START,
    catchup=False,
    default_args={"owner": "examples"},
    tags=["example", "assets"],
):

    @task(outlets=[prices])
    def make():
        """What is said about the update travels with its event."""
        yield Metadata(prices, {"rows": 42})

    make()

with DAG(
    dag_id="use_prices",
    description="Runs when example_prices was updated",
    doc_md=__doc__,
    schedule=[prices],
    start_date=START,
    default_args={"owner": "examples"},
    tags=["example", "assets"],
):

    @task
    def use(triggering_asset_events):
        for asset, events in triggering_asset_events.items():
            for event in events:
                print(f"{asset.name} was updated by {event.source_dag_id}: {event.extra}")

    use()
