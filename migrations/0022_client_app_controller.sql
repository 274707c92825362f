-- Who could act as a client app: who made it, or changed what it proves itself by or may do.
CREATE TABLE client_app_controller (
    client_app_id {id} NOT NULL REFERENCES client_app (id) ON DELETE CASCADE,
    actor_id {id} NOT NULL,
    PRIMARY KEY (client_app_id, actor_id)
) {clustered};
