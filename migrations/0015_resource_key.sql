-- Who asks for a token names resources by their key.
CREATE INDEX client_app_resource__key ON client_app_resource (key, client_app_id);
