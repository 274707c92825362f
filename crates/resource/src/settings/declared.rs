//! The known options of the server. An option is a line, with its German label for the console before it, `#[de(..)]`.
//!
//! `for` names the owners that have the options of a block. A line has the handle by which code reads the
//! option, the type of its value with its bounds, its name in the interface, its default, and its properties:
//! - `mandatory`: a value must be set.
//! - `secret`: the value is encrypted at rest, and is shown to callers who may write it.
//! - `open`: it has no influence on who signs in, by which proof, or where links and codes go. Other options
//!   may be changed only by
//!   administrators whose rights cover everyone who signs in by the owner.

use super::{Count, Flag, Form, List, Span, Text, setting::options};

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * HOUR;
const YEAR: i64 = 366 * DAY;

options! {
    /// Options of a user store.
    UserStoreOption
    for [UserStore] {
        #[de("Aussteller der Claims")]
        CLAIM_ISSUER: Text(Form::Name) = "ClaimIssuer" or "UserStore";
        #[de("Schreibgeschützt")]
        IS_DATABASE_READ_ONLY_MODE: Flag = "IsDatabaseReadOnlyMode" or "false", open;
        #[de("Anmeldung auch mit E-Mail-Adresse")]
        LOGIN_BY_EMAIL_ENABLED: Flag = "LoginByEmailEnabled" or "false";
        #[de("E-Mail-Adressen müssen eindeutig sein")]
        EMAIL_MUST_BE_UNIQUE: Flag = "EmailMustBeUnique" or "false", open;
        #[de("Falsche Kennwörter bis zur Sperre (0: nie)")]
        ATTEMPTS_BEFORE_USER_LOCKED: Count(0, 1_000_000) = "AttemptsBeforeUserLocked" or "0";
        #[de("Vorübergehend sperren")]
        TEMPORARY_LOCK_ENABLED: Flag = "TemporaryLockEnabled" or "true";
        #[de("Falsche Kennwörter bis zur vorübergehenden Sperre")]
        ATTEMPTS_BEFORE_TEMPORARY_LOCK: Count(0, 1_000_000) = "AttemptsBeforeTemporaryLock" or "5";
        #[de("Dauer einer vorübergehenden Sperre")]
        TEMPORARY_LOCK_DURATION: Span(SECOND, YEAR) = "TemporaryLockDuration" or "00:05:00";
        #[de("Nach falschen Kennwörtern verzögern")]
        LOGIN_THROTTLING_ENABLED: Flag = "LoginThrottlingEnabled" or "true";
        #[de("Erste Verzögerung")]
        LOGIN_THROTTLING_INITIAL_DELAY: Span(0, HOUR) = "LoginThrottlingInitialDelay" or "00:00:01";
        #[de("Maximale Verzögerung")]
        LOGIN_THROTTLING_MAX_DELAY: Span(0, DAY) = "LoginThrottlingMaxDelay" or "00:00:30";
        #[de("Sperren melden")]
        USER_LOCK_NOTIFICATION_ENABLED: Flag = "UserLockNotificationEnabled" or "false", open;
        #[de("Empfänger der Meldungen")]
        USER_LOCK_NOTIFICATION_RECIPIENTS: List(Form::Recipients) = "UserLockNotificationRecipients" or "", open;
        #[de("Minimale Kennwortlänge")]
        PASSWORD_MIN_LENGTH: Count(1, 1024) = "PasswordMinLength" or "8";
        #[de("Maximale Kennwortlänge")]
        PASSWORD_MAX_LENGTH: Count(1, 1024) = "PasswordMaxLength" or "128";
        #[de("Ziffer erforderlich")]
        PASSWORD_REQUIRE_DIGIT: Flag = "PasswordRequireDigit" or "false";
        #[de("Kleinbuchstabe erforderlich")]
        PASSWORD_REQUIRE_LOWERCASE: Flag = "PasswordRequireLowercase" or "false";
        #[de("Großbuchstabe erforderlich")]
        PASSWORD_REQUIRE_UPPERCASE: Flag = "PasswordRequireUppercase" or "false";
        #[de("Sonderzeichen erforderlich")]
        PASSWORD_REQUIRE_NON_ALPHANUMERIC: Flag = "PasswordRequireNonAlphanumeric" or "false";
        #[de("Verbreitete Kennwörter ablehnen")]
        PASSWORD_BLOCKLIST_ENABLED: Flag = "PasswordBlocklistEnabled" or "true";
        #[de("Anmeldenamen ablehnen")]
        PASSWORD_NOT_LOGIN_NAME: Flag = "PasswordNotLoginName" or "true";
        #[de("E-Mail-Adresse ablehnen")]
        PASSWORD_NOT_EMAIL: Flag = "PasswordNotEmail" or "true";
        #[de("Anzahl früherer Kennwörter, die abgelehnt werden")]
        PASSWORD_HISTORY_COUNT: Count(0, 24) = "PasswordHistoryCount" or "0";
        #[de("Tage, bis ein Kennwort abläuft (0: nie)")]
        PASSWORD_EXPIRATION_DAYS: Count(0, 36_500) = "PasswordExpirationDays" or "0";
        #[de("Gültigkeit eines initialen Kennworts")]
        INITIAL_PASSWORD_EXPIRATION: Span(SECOND, YEAR) = "InitialPasswordExpiration" or "7.00:00:00";
        #[de("Gültigkeit eines Links zum Zurücksetzen")]
        PASSWORD_RESET_TOKEN_LIFETIME: Span(SECOND, 30 * DAY) = "PasswordResetTokenLifetime" or "01:00:00";
        #[de("Adresse der Seite zum Zurücksetzen")]
        PASSWORD_RESET_URL_TEMPLATE: Text(Form::LinkTemplate) = "PasswordResetUrlTemplate" or "";
        EMAIL_SENDER_ADDRESS: Text(Form::Sender) = "EMailSenderAddress" or "";
        MAIL_SERVER_CONFIG: Text(Form::MailServer) = "MailServerConfig" or "", secret;
        #[de("Gelöschte Benutzer in Quarantäne aufbewahren")]
        USER_DELETION_QUARANTINE_ENABLED: Flag = "UserDeletionQuarantineEnabled" or "true", open;
        #[de("Dauer der Quarantäne")]
        USER_DELETION_QUARANTINE_DURATION: Span(SECOND, 100 * YEAR) = "UserDeletionQuarantineDuration" or "30.00:00:00", open;
        #[de("Passkeys")]
        PASSKEY_ENABLED: Flag = "PasskeyEnabled" or "true";
        #[de("Relying-Party-ID")]
        PASSKEY_RELYING_PARTY_ID: Text(Form::Domain) = "PasskeyRelyingPartyId" or "";
        #[de("Angezeigter Name")]
        PASSKEY_RELYING_PARTY_NAME: Text(Form::Text) = "PasskeyRelyingPartyName" or "";
        #[de("Weitere Ursprünge")]
        PASSKEY_ALLOWED_ORIGINS: Text(Form::Origins) = "PasskeyAllowedOrigins" or "";
        #[de("Prüfung der Person")]
        PASSKEY_USER_VERIFICATION: Text(Form::Choice(&["required", "preferred", "discouraged"])) = "PasskeyUserVerification" or "required";
        #[de("Attestierung")]
        PASSKEY_ATTESTATION: Text(Form::Choice(&["none", "indirect", "direct", "enterprise"])) = "PasskeyAttestation" or "none";
        #[de("Erlaubte Modelle")]
        PASSKEY_ALLOWED_AAGUIDS: Text(Form::Aaguids) = "PasskeyAllowedAaguids" or "";
        #[de("Abgelehnte Modelle")]
        PASSKEY_BLOCKED_AAGUIDS: Text(Form::Aaguids) = "PasskeyBlockedAaguids" or "";
        #[de("Erforderliche Passkeys pro Benutzer")]
        PASSKEY_REQUIRED_CREDENTIAL_COUNT: Count(0, 100) = "PasskeyRequiredCredentialCount" or "2";
        #[de("Erforderliche geprüfte Kontakte pro Benutzer")]
        PASSKEY_REQUIRED_VERIFIED_SECURITY_CONTACT_COUNT: Count(0, 100) = "PasskeyRequiredVerifiedSecurityContactCount" or "1";
        #[de("Ein Passkey gilt als bewährt nach")]
        PASSKEY_BINDING_MATURITY: Span(0, 10 * YEAR) = "PasskeyBindingMaturity" or "7.00:00:00";
        #[de("Passkeys bei der Anmeldung")]
        PASSKEY_ENROLMENT: Text(Form::Choice(&["Off", "Offer", "Require"])) = "PasskeyEnrolment" or "Offer";
        #[de("Befristete Zugangspässe")]
        TEMPORARY_ACCESS_PASS_ENABLED: Flag = "TemporaryAccessPassEnabled" or "true";
        #[de("Standardgültigkeit")]
        TEMPORARY_ACCESS_PASS_DEFAULT_LIFETIME: Span(MINUTE, 30 * DAY) = "TemporaryAccessPassDefaultLifetime" or "01:00:00";
        #[de("Maximale Gültigkeit")]
        TEMPORARY_ACCESS_PASS_MAX_LIFETIME: Span(MINUTE, 30 * DAY) = "TemporaryAccessPassMaxLifetime" or "08:00:00";
        #[de("Einmal verwendbar")]
        TEMPORARY_ACCESS_PASS_ONE_TIME_USE: Flag = "TemporaryAccessPassOneTimeUse" or "true";
        #[de("Länge")]
        TEMPORARY_ACCESS_PASS_LENGTH: Count(8, 64) = "TemporaryAccessPassLength" or "12";
        EVENT_RETENTION: Span(DAY, 90 * DAY) = "EventRetention" or "7.00:00:00", open;
        #[de("Anlegen stellt gelöschte Benutzer wieder her")]
        SCIM_CREATE_RESTORES: Flag = "ScimCreateRestores" or "true", open;
        SCIM_RATE_LIMIT: Count(1, 100_000) = "ScimRateLimit" or "100", open;
        SCIM_MASS_CHANGE_LIMIT: Count(0, 1_000_000) = "ScimMassChangeLimit" or "500", open;
    }
}

options! {
    /// Options of an external identity provider.
    ProviderOption
    for [OpenIdConnect, AdfsOAuth] {
        #[de("Adresse des Anbieters")]
        AUTHORITY: Text(Form::Endpoint) = "Authority" or "", mandatory;
    }
    for [OpenIdConnect, AdfsOAuth, Microsoft, Google, Facebook, Twitter] {
        #[de("Client-ID")]
        CLIENT_ID: Text(Form::Text) = "ClientId" or "", mandatory;
        #[de("Client-Geheimnis")]
        CLIENT_SECRET: Text(Form::Text) = "ClientSecret" or "", mandatory, secret;
        #[de("Callback-Pfad")]
        CALLBACK_PATH: Text(Form::CallbackPath) = "CallbackPath" or "";
    }
    for [OpenIdConnect, AdfsOAuth] {
        #[de("Angefragte Ressourcen")]
        REQUEST_RESOURCES: Text(Form::Resources) = "RequestResources" or "";
    }
    for [OpenIdConnect, AdfsOAuth, Microsoft, Google, Facebook, Twitter] {
        #[de("Weitere Scopes")]
        ADDITIONAL_SCOPES: Text(Form::Scopes) = "AdditionalScopes" or "";
    }
    for [OpenIdConnect] {
        #[de("Auch beim Anbieter abmelden")]
        SIGN_OUT_UPSTREAM: Flag = "SignOutUpstream" or "false";
        #[de("Provisionierung über SCIM")]
        SCIM_ENABLED: Flag = "ScimEnabled" or "false";
        #[de("SCIM-Token")]
        SCIM_TOKEN: Text(Form::Text) = "ScimToken" or "", secret;
        #[de("ID des SCIM-Tokens")]
        SCIM_TOKEN_ID: Text(Form::Text) = "ScimTokenId" or "";
        #[de("Kennungen für SCIM")]
        SCIM_UNIQUE_IDENTIFIER_VALUES: Text(Form::Identifiers) = "ScimUniqueIdentifierValues" or "";
        #[de("Claim, an dem Personen erkannt werden")]
        SCIM_SUBJECT_CLAIM: Text(Form::Name) = "ScimSubjectClaim" or "sub";
        #[de("Löschen durch SCIM schließt Client-Apps für die Person")]
        SCIM_DELETE_CASCADES: Flag = "ScimDeleteCascades" or "false";
        SCIM_RATE_LIMIT: Count(1, 100_000) = "ScimRateLimit" or "100";
        SCIM_MASS_CHANGE_LIMIT: Count(0, 1_000_000) = "ScimMassChangeLimit" or "500";
    }
}

options! {
    /// Options of a second factor.
    FactorOption
    for [MfaEmail] {
        EMAIL_SENDER_ADDRESS: Text(Form::Sender) = "EMailSenderAddress" or "";
        MAIL_SERVER_CONFIG: Text(Form::MailServer) = "MailServerConfig" or "", secret;
    }
    for [MfaTotp] {
        #[de("Stellen")]
        DIGITS: Count(6, 8) = "Digits" or "6";
        #[de("Ein Code wechselt nach")]
        PERIOD: Span(10 * SECOND, 5 * MINUTE) = "Period" or "00:00:30";
        #[de("Verfahren")]
        ALGORITHM: Text(Form::Choice(&["SHA1", "SHA256", "SHA512"])) = "Algorithm" or "SHA1";
        #[de("Name in der App")]
        ISSUER: Text(Form::AuthenticatorIssuer) = "Issuer" or "";
    }
    for [MfaSms] {
        #[de("Adresse des Gateways")]
        GATEWAY_URL: Text(Form::Endpoint) = "GatewayUrl" or "";
        #[de("Token des Gateways")]
        GATEWAY_TOKEN: Text(Form::Text) = "GatewayToken" or "", secret;
    }
    for [MfaEmail, MfaSms] {
        #[de("Länge eines Codes")]
        CODE_LENGTH: Count(4, 12) = "CodeLength" or "6";
        #[de("Gültigkeit eines Codes")]
        CODE_LIFETIME: Span(10 * SECOND, HOUR) = "CodeLifetime" or "00:05:00";
        #[de("Falsche Codes bis zum Ende")]
        MAX_ATTEMPTS: Count(1, 100) = "MaxAttempts" or "5";
        #[de("Wartezeit bis zum nächsten Code")]
        RESEND_INTERVAL: Span(0, HOUR) = "ResendInterval" or "00:00:30";
    }
}

options! {
    /// Options of a tenant.
    TenantOption
    for [Tenant] {
        #[de("Gültigkeit eines Zugriffstokens")]
        ACCESS_TOKEN_LIFETIME: Span(MINUTE, DAY) = "AccessTokenLifetime" or "01:00:00", open;
        #[de("Typ im Header von Zugriffstoken (typ)")]
        ACCESS_TOKEN_HEADER_TYPE: Text(Form::Choice(&["AtJwt", "Jwt"])) = "AccessTokenHeaderType" or "AtJwt", open;
        #[de("Gültigkeit eines ID-Tokens")]
        IDENTITY_TOKEN_LIFETIME: Span(MINUTE, DAY) = "IdentityTokenLifetime" or "00:20:00", open;
        #[de("Gültigkeit eines Autorisierungscodes")]
        AUTHORIZATION_CODE_LIFETIME: Span(10 * SECOND, 10 * MINUTE) = "AuthorizationCodeLifetime" or "00:05:00", open;
        #[de("Gültigkeit eines Refresh-Tokens")]
        REFRESH_TOKEN_LIFETIME: Span(MINUTE, YEAR) = "RefreshTokenLifetime" or "14.00:00:00", open;
        #[de("Maximale Gültigkeit einer Gewährung")]
        REFRESH_TOKEN_ABSOLUTE_LIFETIME: Span(HOUR, 10 * YEAR) = "RefreshTokenAbsoluteLifetime" or "90.00:00:00", open;
        #[de("Toleranz für bereits verwendete Refresh-Token")]
        REFRESH_TOKEN_REUSE_LEEWAY: Span(0, 5 * MINUTE) = "RefreshTokenReuseLeeway" or "00:00:30", open;
        #[de("Gültigkeit eines Gerätecodes")]
        DEVICE_CODE_LIFETIME: Span(MINUTE, HOUR) = "DeviceCodeLifetime" or "00:10:00", open;
        #[de("Gültigkeit einer gemerkten Sitzung")]
        SESSION_LIFETIME: Span(MINUTE, YEAR) = "SessionLifetime" or "14.00:00:00", open;
        #[de("Aktivität verlängert eine Sitzung")]
        SESSION_SLIDING: Flag = "SessionSliding" or "true", open;
        #[de("Maximale Gültigkeit einer Sitzung")]
        SESSION_ABSOLUTE_LIFETIME: Span(HOUR, YEAR) = "SessionAbsoluteLifetime" or "90.00:00:00", open;
        #[de("Gültigkeit einer Browser-Sitzung")]
        BROWSER_SESSION_LIFETIME: Span(MINUTE, 30 * DAY) = "BrowserSessionLifetime" or "10:00:00", open;
        #[de("PKCE ist erforderlich")]
        PKCE_REQUIRED: Flag = "PkceRequired" or "false", open;
        #[de("Ein Passkey gilt als beide Faktoren")]
        PASSKEY_SATISFIES_SECOND_FACTOR: Flag = "PasskeySatisfiesSecondFactor" or "true";
        #[de("Zweite Faktoren werden eingerichtet")]
        SECOND_FACTOR_ENROLMENT: Text(Form::Choice(&["AtSignIn", "Administrator"])) = "SecondFactorEnrolment" or "AtSignIn";
        #[de("Dauer, für die ein Browser gemerkt wird")]
        REMEMBER_DEVICE_LIFETIME: Span(0, YEAR) = "RememberDeviceLifetime" or "00:00:00";
        #[de("E-Mail-Adressen müssen bestätigt sein")]
        EMAIL_CONFIRMATION_REQUIRED: Flag = "EmailConfirmationRequired" or "false", open;
        #[de("Version der Nutzungsbedingungen")]
        TERMS_VERSION: Text(Form::Text) = "TermsVersion" or "", open;
        #[de("Adresse der Nutzungsbedingungen")]
        TERMS_URL: Text(Form::Page) = "TermsUrl" or "", open;
        #[de("Markenname")]
        BRAND_NAME: Text(Form::Text) = "BrandName" or "", open;
        #[de("Logo")]
        BRAND_LOGO: Text(Form::Address) = "BrandLogo" or "", open;
        #[de("Markenfarbe")]
        BRAND_COLOUR: Text(Form::Colour) = "BrandColour" or "", open;
        #[de("Links auf den Seiten")]
        PAGE_LINKS: Text(Form::Links) = "PageLinks" or "";
        #[de("Benutzer können ihr Kennwort zurücksetzen")]
        PASSWORD_RESET_ENABLED: Flag = "PasswordResetEnabled" or "true";
        #[de("Aufbewahrung von Anmeldungen")]
        SIGN_IN_RECORD_RETENTION: Span(DAY, 10 * YEAR) = "SignInRecordRetention" or "90.00:00:00", open;
        EVENT_RETENTION: Span(DAY, 90 * DAY) = "EventRetention" or "7.00:00:00", open;
    }
}
