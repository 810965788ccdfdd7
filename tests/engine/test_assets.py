"""Asset conditions."""

from __future__ import annotations

from typing import Any

import pytest

from scheduler_app.engine.assets import AssetKey, aliases_of, assets_of, missing, satisfied

A, B, C = (AssetKey(name, f"s3://{name}") for name in "abc")


def asset(key: AssetKey) -> dict[str, Any]:
    return {"asset": {"name": key.name, "uri": key.uri, "group": "asset"}}


MIXED = {"all": [asset(A), {"any": [asset(B), asset(C)]}]}


@pytest.mark.parametrize(
    ("condition", "updated", "enough"),
    [
        (asset(A), {A}, True),
        (asset(A), {B}, False),
        ({"all": [asset(A), asset(B)]}, {A}, False),
        ({"all": [asset(A), asset(B)]}, {A, B, C}, True),
        ({"any": [asset(A), asset(B)]}, {B}, True),
        ({"any": []}, {A}, False),
        ({"all": []}, {A}, False),
        (MIXED, {A}, False),
        (MIXED, {B, C}, False),
        (MIXED, {A, C}, True),
        ({"ref": {"name": "a"}}, {A}, True),
        ({"ref": {"uri": "s3://b"}}, {A}, False),
        ({"alias": "any_of_them"}, {B}, True),
        ({"alias": "any_of_them"}, {C}, False),
        ({"alias": "unknown"}, {A}, False),
        ({"asset": {"uri": "plain"}}, {AssetKey("plain", "plain")}, True),
    ],
)
def test_which_updates_are_enough(condition: dict[str, Any], updated: set[AssetKey], enough: bool) -> None:
    assert satisfied(condition, updated, {"any_of_them": [A, B]}) is enough


def test_it_says_what_is_missing() -> None:
    assert missing(MIXED, {B}) == ["a"]
    assert missing(MIXED, {A}) == ["b", "c"]
    assert missing(MIXED, {A, B}) == []
    assert missing({"any": [{"alias": "x"}, {"ref": {"uri": "s3://q"}}]}, set()) == ["x", "s3://q"]


def test_it_lists_what_a_condition_names() -> None:
    condition = {"any": [MIXED, asset(A), {"alias": "x"}, {"ref": {"name": "q"}}]}
    assert assets_of(condition) == [A, B, C]
    assert aliases_of(condition) == ["x"]
