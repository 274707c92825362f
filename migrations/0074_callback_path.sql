-- The instance that has a callback path, looked up when the option is set and in each sign-in by an instance that has one.
CREATE INDEX option_value__callback_path ON option_value (value) WHERE name = 'CallbackPath';
