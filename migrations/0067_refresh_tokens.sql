-- When a client app gets refresh tokens: only with the scope offline_access, or for as long as the session of the person lasts.
ALTER TABLE client_app ADD COLUMN refresh_tokens {text} NOT NULL DEFAULT 'OfflineAccess';
