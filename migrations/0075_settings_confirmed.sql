-- Who last confirmed the settings of an external identity provider, and when: settings from before count as set by that actor.
ALTER TABLE idp_instance ADD COLUMN settings_confirmed_by {id};
ALTER TABLE idp_instance ADD COLUMN settings_confirmed_on {time};
