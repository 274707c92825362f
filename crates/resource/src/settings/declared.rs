//! The known options of the server. An option is a line.
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
        CLAIM_ISSUER: Text(Form::Name) = "ClaimIssuer" or "UserStore";
        IS_DATABASE_READ_ONLY_MODE: Flag = "IsDatabaseReadOnlyMode" or "false", open;
        LOGIN_BY_EMAIL_ENABLED: Flag = "LoginByEmailEnabled" or "false";
        EMAIL_MUST_BE_UNIQUE: Flag = "EmailMustBeUnique" or "false", open;
        ATTEMPTS_BEFORE_USER_LOCKED: Count(0, 1_000_000) = "AttemptsBeforeUserLocked" or "0";
        TEMPORARY_LOCK_ENABLED: Flag = "TemporaryLockEnabled" or "true";
        ATTEMPTS_BEFORE_TEMPORARY_LOCK: Count(0, 1_000_000) = "AttemptsBeforeTemporaryLock" or "5";
        TEMPORARY_LOCK_DURATION: Span(SECOND, YEAR) = "TemporaryLockDuration" or "00:05:00";
        LOGIN_THROTTLING_ENABLED: Flag = "LoginThrottlingEnabled" or "true";
        LOGIN_THROTTLING_INITIAL_DELAY: Span(0, HOUR) = "LoginThrottlingInitialDelay" or "00:00:01";
        LOGIN_THROTTLING_MAX_DELAY: Span(0, DAY) = "LoginThrottlingMaxDelay" or "00:00:30";
        USER_LOCK_NOTIFICATION_ENABLED: Flag = "UserLockNotificationEnabled" or "false", open;
        USER_LOCK_NOTIFICATION_RECIPIENTS: List(Form::Recipients) = "UserLockNotificationRecipients" or "", open;
        PASSWORD_MIN_LENGTH: Count(1, 1024) = "PasswordMinLength" or "8";
        PASSWORD_MAX_LENGTH: Count(1, 1024) = "PasswordMaxLength" or "128";
        PASSWORD_REQUIRE_DIGIT: Flag = "PasswordRequireDigit" or "false";
        PASSWORD_REQUIRE_LOWERCASE: Flag = "PasswordRequireLowercase" or "false";
        PASSWORD_REQUIRE_UPPERCASE: Flag = "PasswordRequireUppercase" or "false";
        PASSWORD_REQUIRE_NON_ALPHANUMERIC: Flag = "PasswordRequireNonAlphanumeric" or "false";
        PASSWORD_BLOCKLIST_ENABLED: Flag = "PasswordBlocklistEnabled" or "true";
        PASSWORD_NOT_LOGIN_NAME: Flag = "PasswordNotLoginName" or "true";
        PASSWORD_NOT_EMAIL: Flag = "PasswordNotEmail" or "true";
        PASSWORD_HISTORY_COUNT: Count(0, 24) = "PasswordHistoryCount" or "0";
        PASSWORD_EXPIRATION_DAYS: Count(0, 36_500) = "PasswordExpirationDays" or "0";
        INITIAL_PASSWORD_EXPIRATION: Span(SECOND, YEAR) = "InitialPasswordExpiration" or "7.00:00:00";
        PASSWORD_RESET_TOKEN_LIFETIME: Span(SECOND, 30 * DAY) = "PasswordResetTokenLifetime" or "01:00:00";
        PASSWORD_RESET_URL_TEMPLATE: Text(Form::LinkTemplate) = "PasswordResetUrlTemplate" or "";
        EMAIL_SENDER_ADDRESS: Text(Form::Sender) = "EMailSenderAddress" or "";
        MAIL_SERVER_CONFIG: Text(Form::MailServer) = "MailServerConfig" or "", secret;
        USER_DELETION_QUARANTINE_ENABLED: Flag = "UserDeletionQuarantineEnabled" or "true", open;
        USER_DELETION_QUARANTINE_DURATION: Span(SECOND, 100 * YEAR) = "UserDeletionQuarantineDuration" or "30.00:00:00", open;
        PASSKEY_ENABLED: Flag = "PasskeyEnabled" or "true";
        PASSKEY_RELYING_PARTY_ID: Text(Form::Domain) = "PasskeyRelyingPartyId" or "";
        PASSKEY_RELYING_PARTY_NAME: Text(Form::Text) = "PasskeyRelyingPartyName" or "";
        PASSKEY_ALLOWED_ORIGINS: Text(Form::Origins) = "PasskeyAllowedOrigins" or "";
        PASSKEY_USER_VERIFICATION: Text(Form::Choice(&["required", "preferred", "discouraged"])) = "PasskeyUserVerification" or "required";
        PASSKEY_ATTESTATION: Text(Form::Choice(&["none", "indirect", "direct", "enterprise"])) = "PasskeyAttestation" or "none";
        PASSKEY_ALLOWED_AAGUIDS: Text(Form::Aaguids) = "PasskeyAllowedAaguids" or "";
        PASSKEY_BLOCKED_AAGUIDS: Text(Form::Aaguids) = "PasskeyBlockedAaguids" or "";
        PASSKEY_REQUIRED_CREDENTIAL_COUNT: Count(0, 100) = "PasskeyRequiredCredentialCount" or "2";
        PASSKEY_REQUIRED_VERIFIED_SECURITY_CONTACT_COUNT: Count(0, 100) = "PasskeyRequiredVerifiedSecurityContactCount" or "1";
        PASSKEY_BINDING_MATURITY: Span(0, 10 * YEAR) = "PasskeyBindingMaturity" or "7.00:00:00";
        PASSKEY_ENROLMENT: Text(Form::Choice(&["Off", "Offer", "Require"])) = "PasskeyEnrolment" or "Offer";
        TEMPORARY_ACCESS_PASS_ENABLED: Flag = "TemporaryAccessPassEnabled" or "true";
        TEMPORARY_ACCESS_PASS_DEFAULT_LIFETIME: Span(MINUTE, 30 * DAY) = "TemporaryAccessPassDefaultLifetime" or "01:00:00";
        TEMPORARY_ACCESS_PASS_MAX_LIFETIME: Span(MINUTE, 30 * DAY) = "TemporaryAccessPassMaxLifetime" or "08:00:00";
        TEMPORARY_ACCESS_PASS_ONE_TIME_USE: Flag = "TemporaryAccessPassOneTimeUse" or "true";
        TEMPORARY_ACCESS_PASS_LENGTH: Count(8, 64) = "TemporaryAccessPassLength" or "12";
        EVENT_RETENTION: Span(DAY, 90 * DAY) = "EventRetention" or "7.00:00:00", open;
        SCIM_CREATE_RESTORES: Flag = "ScimCreateRestores" or "true", open;
        SCIM_RATE_LIMIT: Count(1, 100_000) = "ScimRateLimit" or "100", open;
        SCIM_MASS_CHANGE_LIMIT: Count(0, 1_000_000) = "ScimMassChangeLimit" or "500", open;
    }
}

options! {
    /// Options of an external identity provider.
    ProviderOption
    for [OpenIdConnect, AdfsOAuth] {
        AUTHORITY: Text(Form::Endpoint) = "Authority" or "", mandatory;
    }
    for [OpenIdConnect, AdfsOAuth, Microsoft, Google, Facebook, Twitter] {
        CLIENT_ID: Text(Form::Text) = "ClientId" or "", mandatory;
        CLIENT_SECRET: Text(Form::Text) = "ClientSecret" or "", mandatory, secret;
        CALLBACK_PATH: Text(Form::CallbackPath) = "CallbackPath" or "";
    }
    for [OpenIdConnect, AdfsOAuth] {
        REQUEST_RESOURCES: Text(Form::Resources) = "RequestResources" or "";
    }
    for [OpenIdConnect, AdfsOAuth, Microsoft, Google, Facebook, Twitter] {
        ADDITIONAL_SCOPES: Text(Form::Scopes) = "AdditionalScopes" or "";
    }
    for [OpenIdConnect] {
        SIGN_OUT_UPSTREAM: Flag = "SignOutUpstream" or "false";
        SCIM_ENABLED: Flag = "ScimEnabled" or "false";
        SCIM_TOKEN: Text(Form::Text) = "ScimToken" or "", secret;
        SCIM_TOKEN_ID: Text(Form::Text) = "ScimTokenId" or "";
        SCIM_UNIQUE_IDENTIFIER_VALUES: Text(Form::Identifiers) = "ScimUniqueIdentifierValues" or "";
        SCIM_SUBJECT_CLAIM: Text(Form::Name) = "ScimSubjectClaim" or "sub";
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
        DIGITS: Count(6, 8) = "Digits" or "6";
        PERIOD: Span(10 * SECOND, 5 * MINUTE) = "Period" or "00:00:30";
        ALGORITHM: Text(Form::Choice(&["SHA1", "SHA256", "SHA512"])) = "Algorithm" or "SHA1";
        ISSUER: Text(Form::AuthenticatorIssuer) = "Issuer" or "";
    }
    for [MfaSms] {
        GATEWAY_URL: Text(Form::Endpoint) = "GatewayUrl" or "";
        GATEWAY_TOKEN: Text(Form::Text) = "GatewayToken" or "", secret;
    }
    for [MfaEmail, MfaSms] {
        CODE_LENGTH: Count(4, 12) = "CodeLength" or "6";
        CODE_LIFETIME: Span(10 * SECOND, HOUR) = "CodeLifetime" or "00:05:00";
        MAX_ATTEMPTS: Count(1, 100) = "MaxAttempts" or "5";
        RESEND_INTERVAL: Span(0, HOUR) = "ResendInterval" or "00:00:30";
    }
}

options! {
    /// Options of a tenant.
    TenantOption
    for [Tenant] {
        ACCESS_TOKEN_LIFETIME: Span(MINUTE, DAY) = "AccessTokenLifetime" or "01:00:00", open;
        ACCESS_TOKEN_HEADER_TYPE: Text(Form::Choice(&["AtJwt", "Jwt"])) = "AccessTokenHeaderType" or "AtJwt", open;
        IDENTITY_TOKEN_LIFETIME: Span(MINUTE, DAY) = "IdentityTokenLifetime" or "00:20:00", open;
        AUTHORIZATION_CODE_LIFETIME: Span(10 * SECOND, 10 * MINUTE) = "AuthorizationCodeLifetime" or "00:05:00", open;
        REFRESH_TOKEN_LIFETIME: Span(MINUTE, YEAR) = "RefreshTokenLifetime" or "14.00:00:00", open;
        REFRESH_TOKEN_ABSOLUTE_LIFETIME: Span(HOUR, 10 * YEAR) = "RefreshTokenAbsoluteLifetime" or "90.00:00:00", open;
        REFRESH_TOKEN_REUSE_LEEWAY: Span(0, 5 * MINUTE) = "RefreshTokenReuseLeeway" or "00:00:30", open;
        DEVICE_CODE_LIFETIME: Span(MINUTE, HOUR) = "DeviceCodeLifetime" or "00:10:00", open;
        SESSION_LIFETIME: Span(MINUTE, YEAR) = "SessionLifetime" or "14.00:00:00", open;
        SESSION_SLIDING: Flag = "SessionSliding" or "true", open;
        SESSION_ABSOLUTE_LIFETIME: Span(HOUR, YEAR) = "SessionAbsoluteLifetime" or "90.00:00:00", open;
        BROWSER_SESSION_LIFETIME: Span(MINUTE, 30 * DAY) = "BrowserSessionLifetime" or "10:00:00", open;
        PKCE_REQUIRED: Flag = "PkceRequired" or "false", open;
        PASSKEY_SATISFIES_SECOND_FACTOR: Flag = "PasskeySatisfiesSecondFactor" or "true";
        SECOND_FACTOR_ENROLMENT: Text(Form::Choice(&["AtSignIn", "Administrator"])) = "SecondFactorEnrolment" or "AtSignIn";
        REMEMBER_DEVICE_LIFETIME: Span(0, YEAR) = "RememberDeviceLifetime" or "00:00:00";
        EMAIL_CONFIRMATION_REQUIRED: Flag = "EmailConfirmationRequired" or "false", open;
        TERMS_VERSION: Text(Form::Text) = "TermsVersion" or "", open;
        TERMS_URL: Text(Form::Page) = "TermsUrl" or "", open;
        BRAND_NAME: Text(Form::Text) = "BrandName" or "", open;
        BRAND_LOGO: Text(Form::Address) = "BrandLogo" or "", open;
        BRAND_COLOUR: Text(Form::Colour) = "BrandColour" or "", open;
        PAGE_LINKS: Text(Form::Links) = "PageLinks" or "";
        PASSWORD_RESET_ENABLED: Flag = "PasswordResetEnabled" or "true";
        SIGN_IN_RECORD_RETENTION: Span(DAY, 10 * YEAR) = "SignInRecordRetention" or "90.00:00:00", open;
        EVENT_RETENTION: Span(DAY, 90 * DAY) = "EventRetention" or "7.00:00:00", open;
    }
}
