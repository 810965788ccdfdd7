"""The judge sits in the database: at the commit of every hand-out and every start of a run it counts for itself.

A deferred constraint trigger runs when the transaction commits, with everything in it done and every earlier commit
visible: what it counts is what admission must have counted. The same counts are also sampled from outside
(:data:`EXCESS`), for two commits that pass each other.
"""

from __future__ import annotations

#: One line of text for each limit that is exceeded at this moment.
EXCESS = "SELECT * FROM siege_excess()"
VERDICTS = "SELECT what, count(*) FROM siege_verdict GROUP BY what ORDER BY what"
CHECKS = "SELECT last_value FROM siege_checks"
#: Hand-outs that were started more than once, and task instances that succeeded more than once.
DOUBLED = """
SELECT (SELECT count(*) FROM (SELECT 1 FROM siege_move WHERE verb = 'start' GROUP BY ti, fence HAVING count(*) > 1) d),
       (SELECT count(*) FROM (SELECT 1 FROM siege_move WHERE verb = 'succeed' GROUP BY ti HAVING count(*) > 1) d)
"""
STARTED = "SELECT count(*) FROM siege_move WHERE verb = 'start'"

INSTALL = """
CREATE TABLE siege_verdict (what text);
CREATE TABLE siege_move (ti bigint, fence bigint, verb text);
CREATE SEQUENCE siege_checks;
-- what each hand-out took of keyed limits, by its row alone: what the schedulers wrote down themselves is not asked
CREATE TABLE siege_taken (name text, at timestamptz, units int);
CREATE INDEX siege_taken_window ON siege_taken (name, at);

CREATE FUNCTION siege_takes(limits text) RETURNS TABLE (name text, units int) LANGUAGE sql IMMUTABLE AS $$
    SELECT split_part(pair, '=', 1), split_part(pair, '=', 2)::int
    FROM unnest(string_to_array(nullif(limits, ''), ',')) AS pair
$$;

CREATE FUNCTION siege_excess() RETURNS SETOF text LANGUAGE sql STABLE AS $$
    WITH active AS MATERIALIZED (
        SELECT dag_id, dag_run_id, task_id, pool, pool_slots, state, max_active_tis_per_dag, max_active_tis_per_dagrun,
               limits
        FROM scheduler_task_instance WHERE state IN ('queued', 'running', 'restarting', 'deferred'))
    SELECT format('pool %s holds %s of %s slots', p.pool, u.used, p.slots)
    FROM scheduler_pool p CROSS JOIN LATERAL (
        SELECT sum(a.pool_slots) AS used FROM active a
        WHERE a.pool = p.pool AND (a.state <> 'deferred' OR p.include_deferred)) u
    WHERE p.slots >= 0 AND u.used > p.slots
    UNION ALL
    SELECT format('%s of %s active tasks in run %s of %s', count(*), d.max_active_tasks, a.dag_run_id, a.dag_id)
    FROM active a JOIN scheduler_dag d USING (dag_id) GROUP BY a.dag_run_id, a.dag_id, d.max_active_tasks
    HAVING count(*) > d.max_active_tasks
    UNION ALL
    SELECT format('%s of %s active instances of %s.%s', count(*), max(max_active_tis_per_dag), dag_id, task_id)
    FROM active GROUP BY dag_id, task_id HAVING count(*) > max(max_active_tis_per_dag)
    UNION ALL
    SELECT format('%s of %s active instances of %s.%s in run %s', count(*), max(max_active_tis_per_dagrun), dag_id,
                  task_id, dag_run_id)
    FROM active GROUP BY dag_id, task_id, dag_run_id HAVING count(*) > max(max_active_tis_per_dagrun)
    UNION ALL
    SELECT format('%s of %s running runs of %s', count(*), d.max_active_runs, r.dag_id)
    FROM scheduler_dag_run r JOIN scheduler_dag d USING (dag_id) WHERE r.state = 'running'
    GROUP BY r.dag_id, d.max_active_runs HAVING count(*) > d.max_active_runs
    UNION ALL
    SELECT format('limit %s holds %s of %s', l.name, sum(t.units), l.amount)
    FROM active a CROSS JOIN LATERAL siege_takes(a.limits) t JOIN scheduler_limit l USING (name)
    WHERE l.per_seconds IS NULL GROUP BY l.name, l.amount HAVING sum(t.units) > l.amount
    UNION ALL
    -- every window that ends with a hand-out of late
    SELECT DISTINCT format('rate %s let %s of %s happen', l.name, w.units, l.amount)
    FROM scheduler_limit l
    JOIN siege_taken e ON e.name = l.name AND e.at > clock_timestamp() - make_interval(secs => 2 * l.per_seconds)
    CROSS JOIN LATERAL (
        SELECT sum(t.units) AS units FROM siege_taken t
        WHERE t.name = l.name AND t.at > e.at - make_interval(secs => l.per_seconds) AND t.at <= e.at) w
    WHERE l.per_seconds IS NOT NULL AND w.units > l.amount
$$;

-- once a transaction: what one row's check sees, all rows of it see
CREATE FUNCTION siege_check() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    IF current_setting('siege.checked', true) IS DISTINCT FROM txid_current()::text THEN
        PERFORM set_config('siege.checked', txid_current()::text, true), nextval('siege_checks');
        INSERT INTO siege_verdict SELECT * FROM siege_excess();
    END IF;
    RETURN NULL;
END $$;
CREATE CONSTRAINT TRIGGER siege_hand_out AFTER UPDATE OF state ON scheduler_task_instance
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.state = 'queued') EXECUTE FUNCTION siege_check();
CREATE CONSTRAINT TRIGGER siege_run AFTER UPDATE OF state ON scheduler_dag_run
    DEFERRABLE INITIALLY DEFERRED FOR EACH ROW WHEN (NEW.state = 'running') EXECUTE FUNCTION siege_check();

CREATE FUNCTION siege_take() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO siege_taken SELECT t.name, NEW.queued_when, t.units FROM siege_takes(NEW.limits) t;
    RETURN NULL;
END $$;
CREATE TRIGGER siege_take AFTER UPDATE OF state ON scheduler_task_instance
    FOR EACH ROW WHEN (NEW.moved_by = 'queue' AND NEW.limits <> '') EXECUTE FUNCTION siege_take();

CREATE FUNCTION siege_note() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
    INSERT INTO siege_move VALUES (NEW.id, NEW.fence, NEW.moved_by);
    RETURN NULL;
END $$;
CREATE TRIGGER siege_note AFTER UPDATE OF state ON scheduler_task_instance
    FOR EACH ROW WHEN (NEW.moved_by IN ('start', 'succeed')) EXECUTE FUNCTION siege_note();
"""
