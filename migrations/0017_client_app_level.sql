-- An asset or a view of a client app belongs to it, so that the client app stays while it is there.
ALTER TABLE custom_asset ADD COLUMN client_app_id {id} REFERENCES client_app (id);
ALTER TABLE custom_view ADD COLUMN client_app_id {id} REFERENCES client_app (id);
CREATE INDEX custom_asset__client_app_id ON custom_asset (client_app_id);
CREATE INDEX custom_view__client_app_id ON custom_view (client_app_id);
