-- Who could act as a client app is kept also when the client app is gone: what it asked for or approved
-- stays.
CREATE TABLE kept_controller (
    client_app_id {id} NOT NULL,
    actor_id {id} NOT NULL,
    PRIMARY KEY (client_app_id, actor_id)
) {clustered};
INSERT INTO kept_controller (client_app_id, actor_id) SELECT client_app_id, actor_id FROM client_app_controller;
DROP TABLE client_app_controller;
ALTER TABLE kept_controller RENAME TO client_app_controller;

-- The form that an entry had when its values were judged last: where a release changes it they are judged again.
ALTER TABLE option_entry ADD COLUMN form {text};
