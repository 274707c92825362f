-- How far each trail has come. Positions of events are given after the commit, by one job at a time, so that
-- none is missed by a reader who goes on from the highest that it saw; they have no hole. The trail is the store of the
-- audit entries, 0 the configuration's, -1 that of sign-ins; leaves are the positions given in the audit tree.
CREATE TABLE event_trail (
    trail {int} NOT NULL PRIMARY KEY,
    placed {int} NOT NULL,
    pruned {int} NOT NULL,
    leaves {int} NOT NULL
) {clustered};
INSERT INTO event_trail (trail, placed, pruned, leaves)
    SELECT t.store, 0, 0, (SELECT count(*) FROM audit_leaf l WHERE l.store = t.store) FROM audit_tree t;

-- Committed events that have no position yet, and the store of the audit entry, where there is one. It takes the place of
-- audit_pending, into which the release before this one writes while both run: the job reads both.
CREATE TABLE event_pending (
    trail {int} NOT NULL,
    event {int} NOT NULL,
    tree {int},
    PRIMARY KEY (trail, event)
) {clustered};

-- Which event stands where.
CREATE TABLE event_place (
    trail {int} NOT NULL,
    position {int} NOT NULL,
    event {int} NOT NULL,
    PRIMARY KEY (trail, position)
) {clustered};
CREATE UNIQUE INDEX event_place__event ON event_place (event);

-- What an event is about belongs to these, so that readers see what their rights cover; and the request behind it, as
-- W3C trace context. The store of an event is its trail.
ALTER TABLE outbox_event ADD COLUMN customer_id {id};
ALTER TABLE outbox_event ADD COLUMN subscription_id {id};
ALTER TABLE outbox_event ADD COLUMN tenant_id {id};
ALTER TABLE outbox_event ADD COLUMN idp_instance_id {id};
ALTER TABLE outbox_event ADD COLUMN traceparent {text};

-- What happened before is placed, too, so that it is read and pruned like the rest.
UPDATE outbox_event SET store = -1 WHERE store = 0 AND envelope LIKE '%"type":"platform.signin.%';
INSERT INTO event_pending (trail, event)
    SELECT o.store, o.id FROM outbox_event o
    WHERE NOT EXISTS (SELECT 1 FROM audit_pending p WHERE p.entry = o.id);

-- The release before this one appends leaves under the lease 'tree', which it cannot renew any more. Positions are given
-- once the last one has run out.
UPDATE job_lease SET until = (SELECT l.until FROM job_lease l WHERE l.name = 'tree') WHERE name = 'placing';
DELETE FROM job_lease WHERE name = 'tree';
INSERT INTO job_lease (name, until) VALUES ('growing', 0);
