-- Who made a token that resets a password: the user, or somebody else, whose rights are looked at again when it is used.
ALTER TABLE password_reset ADD COLUMN made_by {id};

-- When somebody last did what makes a controller of a client app. What an earlier release noted has no time, and counts.
ALTER TABLE client_app_controller ADD COLUMN noted_on {time};
