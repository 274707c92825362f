//! The catalogue of known options: section 5 of the contract's decisions, as data.

use super::Form;

/// The owner of an option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "they are what they are called")]
pub enum Owner {
    UserStore,
    OpenIdConnect,
    AdfsOAuth,
    Microsoft,
    Google,
    Facebook,
    Twitter,
    MfaEmail,
    MfaTotp,
    MfaSms,
    Tenant,
}

/// An option of the catalogue.
#[derive(Clone, Copy, Debug)]
pub struct Entry {
    /// The owner that has the option.
    pub owner: Owner,
    /// Its name.
    pub name: &'static str,
    /// The value in effect where none is set.
    pub default: &'static str,
    /// What its value must be.
    pub form: Form,
    /// Whether a value must be set.
    pub mandatory: bool,
    /// Whether its value is a secret: encrypted at rest, and shown to callers who may write it.
    pub secret: bool,
    /// Whether it decides nothing about who signs in, by what proof, or where links and codes go. Others are changed by those
    /// alone who could act on everybody who signs in by them.
    pub open: bool,
}

impl Entry {
    /// Whether a text is no valid value.
    pub fn is_wrong(&self, text: &str) -> bool {
        (self.mandatory && text.is_empty()) || !self.form.fits(text)
    }
}

impl Owner {
    /// The owners of options by their type's name: the factory types, and tenants.
    pub const TYPES: [(&'static str, Self); 11] = [
        ("UserStore", Self::UserStore),
        ("OpenIdConnect", Self::OpenIdConnect),
        ("AdfsOAuth", Self::AdfsOAuth),
        ("Microsoft", Self::Microsoft),
        ("Google", Self::Google),
        ("Facebook", Self::Facebook),
        ("Twitter", Self::Twitter),
        ("email", Self::MfaEmail),
        ("totp", Self::MfaTotp),
        ("sms", Self::MfaSms),
        ("Tenant", Self::Tenant),
    ];

    /// The owner with this type name.
    pub fn of_type(name: &str) -> Option<Self> {
        Self::TYPES.iter().find(|(known, _)| *known == name).map(|(_, owner)| *owner)
    }

    /// The owner's type name.
    pub fn type_name(self) -> &'static str {
        Self::TYPES.iter().find(|(_, owner)| *owner == self).map_or("", |(name, _)| *name)
    }

    /// Whether it is a second factor.
    pub const fn is_second_factor(self) -> bool {
        matches!(self, Self::MfaEmail | Self::MfaTotp | Self::MfaSms)
    }

    /// The owner's options.
    pub fn entries(self) -> impl Iterator<Item = &'static Entry> {
        CATALOGUE.iter().filter(move |entry| entry.owner == self)
    }

    /// The owner's option of this name.
    pub fn entry(self, name: &str) -> Option<&'static Entry> {
        find(self, name)
    }
}

/// The owner's option of this name.
pub fn find(owner: Owner, name: &str) -> Option<&'static Entry> {
    CATALOGUE.iter().find(|entry| entry.owner == owner && entry.name == name)
}

const fn entry(owner: Owner, name: &'static str, default: &'static str, form: Form) -> Entry {
    Entry { owner, name, default, form, mandatory: false, secret: false, open: false }
}

const fn store(name: &'static str, default: &'static str, form: Form) -> Entry {
    entry(Owner::UserStore, name, default, form)
}

const fn mandatory(owner: Owner, name: &'static str, form: Form) -> Entry {
    Entry { mandatory: true, ..entry(owner, name, "", form) }
}

const fn secret(entry: Entry) -> Entry {
    Entry { secret: true, ..entry }
}

const fn open(entry: Entry) -> Entry {
    Entry { open: true, ..entry }
}

const SECOND: i64 = 1000;
const MINUTE: i64 = 60 * SECOND;
const HOUR: i64 = 60 * MINUTE;
const DAY: i64 = 24 * 3600 * SECOND;
const YEAR: i64 = 366 * DAY;
const COUNT: Form = Form::Number(0, 1_000_000);

/// All options.
#[rustfmt::skip]
pub static CATALOGUE: &[Entry] = &[
    store("ClaimIssuer", "UserStore", Form::Name),
    open(store("IsDatabaseReadOnlyMode", "false", Form::Flag)),
    store("LoginByEmailEnabled", "false", Form::Flag),
    open(store("EmailMustBeUnique", "false", Form::Flag)),
    store("AttemptsBeforeUserLocked", "0", COUNT),
    store("TemporaryLockEnabled", "true", Form::Flag),
    store("AttemptsBeforeTemporaryLock", "5", COUNT),
    store("TemporaryLockDuration", "00:05:00", Form::Span(SECOND, YEAR)),
    store("LoginThrottlingEnabled", "true", Form::Flag),
    store("LoginThrottlingInitialDelay", "00:00:01", Form::Span(0, HOUR)),
    store("LoginThrottlingMaxDelay", "00:00:30", Form::Span(0, DAY)),
    open(store("UserLockNotificationEnabled", "false", Form::Flag)),
    open(store("UserLockNotificationRecipients", "", Form::Recipients)),
    store("PasswordMinLength", "8", Form::Number(1, 1024)),
    store("PasswordMaxLength", "128", Form::Number(1, 1024)),
    store("PasswordRequireDigit", "false", Form::Flag),
    store("PasswordRequireLowercase", "false", Form::Flag),
    store("PasswordRequireUppercase", "false", Form::Flag),
    store("PasswordRequireNonAlphanumeric", "false", Form::Flag),
    store("PasswordBlocklistEnabled", "true", Form::Flag),
    store("PasswordNotLoginName", "true", Form::Flag),
    store("PasswordNotEmail", "true", Form::Flag),
    store("PasswordHistoryCount", "0", Form::Number(0, 24)),
    store("PasswordExpirationDays", "0", Form::Number(0, 36_500)),
    store("InitialPasswordExpiration", "7.00:00:00", Form::Span(SECOND, YEAR)),
    store("PasswordResetTokenLifetime", "01:00:00", Form::Span(SECOND, 30 * DAY)),
    store("PasswordResetUrlTemplate", "", Form::LinkTemplate),
    store("EMailSenderAddress", "", Form::Sender),
    secret(store("MailServerConfig", "", Form::MailServer)),
    open(store("UserDeletionQuarantineEnabled", "true", Form::Flag)),
    open(store("UserDeletionQuarantineDuration", "30.00:00:00", Form::Span(SECOND, 100 * YEAR))),
    store("PasskeyEnabled", "true", Form::Flag),
    store("PasskeyRelyingPartyId", "", Form::Domain),
    store("PasskeyRelyingPartyName", "", Form::Text),
    store("PasskeyAllowedOrigins", "", Form::Origins),
    store("PasskeyUserVerification", "required", Form::Choice(&["required", "preferred", "discouraged"])),
    store("PasskeyAttestation", "none", Form::Choice(&["none", "indirect", "direct", "enterprise"])),
    store("PasskeyAllowedAaguids", "", Form::Aaguids),
    store("PasskeyBlockedAaguids", "", Form::Aaguids),
    store("PasskeyRequiredCredentialCount", "2", Form::Number(0, 100)),
    store("PasskeyRequiredVerifiedSecurityContactCount", "1", Form::Number(0, 100)),
    store("PasskeyBindingMaturity", "7.00:00:00", Form::Span(0, 10 * YEAR)),
    store("PasskeyEnrolment", "Offer", Form::Choice(&["Off", "Offer", "Require"])),
    store("TemporaryAccessPassEnabled", "true", Form::Flag),
    store("TemporaryAccessPassDefaultLifetime", "01:00:00", Form::Span(MINUTE, 30 * DAY)),
    store("TemporaryAccessPassMaxLifetime", "08:00:00", Form::Span(MINUTE, 30 * DAY)),
    store("TemporaryAccessPassOneTimeUse", "true", Form::Flag),
    store("TemporaryAccessPassLength", "12", Form::Number(8, 64)),
    open(entry(Owner::UserStore, "EventRetention", "7.00:00:00", Form::Span(DAY, 90 * DAY))),
    open(store("ScimCreateRestores", "true", Form::Flag)),
    open(store("ScimRateLimit", "100", Form::Number(1, 100_000))),
    open(store("ScimMassChangeLimit", "500", COUNT)),

    mandatory(Owner::OpenIdConnect, "Authority", Form::Endpoint),
    mandatory(Owner::OpenIdConnect, "ClientId", Form::Text),
    secret(mandatory(Owner::OpenIdConnect, "ClientSecret", Form::Text)),
    entry(Owner::OpenIdConnect, "CallbackPath", "", Form::CallbackPath),
    entry(Owner::OpenIdConnect, "RequestResources", "", Form::Resources),
    entry(Owner::OpenIdConnect, "AdditionalScopes", "", Form::Scopes),
    entry(Owner::OpenIdConnect, "SignOutUpstream", "false", Form::Flag),
    entry(Owner::OpenIdConnect, "ScimEnabled", "false", Form::Flag),
    secret(entry(Owner::OpenIdConnect, "ScimToken", "", Form::Text)),
    entry(Owner::OpenIdConnect, "ScimTokenId", "", Form::Text),
    entry(Owner::OpenIdConnect, "ScimUniqueIdentifierValues", "", Form::Identifiers),
    entry(Owner::OpenIdConnect, "ScimSubjectClaim", "sub", Form::Name),
    entry(Owner::OpenIdConnect, "ScimDeleteCascades", "false", Form::Flag),
    entry(Owner::OpenIdConnect, "ScimRateLimit", "100", Form::Number(1, 100_000)),
    entry(Owner::OpenIdConnect, "ScimMassChangeLimit", "500", COUNT),

    mandatory(Owner::AdfsOAuth, "Authority", Form::Endpoint),
    mandatory(Owner::AdfsOAuth, "ClientId", Form::Text),
    secret(mandatory(Owner::AdfsOAuth, "ClientSecret", Form::Text)),
    entry(Owner::AdfsOAuth, "CallbackPath", "", Form::CallbackPath),
    entry(Owner::AdfsOAuth, "RequestResources", "", Form::Resources),
    entry(Owner::AdfsOAuth, "AdditionalScopes", "", Form::Scopes),

    mandatory(Owner::Microsoft, "ClientId", Form::Text),
    secret(mandatory(Owner::Microsoft, "ClientSecret", Form::Text)),
    entry(Owner::Microsoft, "CallbackPath", "", Form::CallbackPath),
    entry(Owner::Microsoft, "AdditionalScopes", "", Form::Scopes),

    mandatory(Owner::Google, "ClientId", Form::Text),
    secret(mandatory(Owner::Google, "ClientSecret", Form::Text)),
    entry(Owner::Google, "CallbackPath", "", Form::CallbackPath),
    entry(Owner::Google, "AdditionalScopes", "", Form::Scopes),

    mandatory(Owner::Facebook, "ClientId", Form::Text),
    secret(mandatory(Owner::Facebook, "ClientSecret", Form::Text)),
    entry(Owner::Facebook, "CallbackPath", "", Form::CallbackPath),
    entry(Owner::Facebook, "AdditionalScopes", "", Form::Scopes),

    mandatory(Owner::Twitter, "ClientId", Form::Text),
    secret(mandatory(Owner::Twitter, "ClientSecret", Form::Text)),
    entry(Owner::Twitter, "CallbackPath", "", Form::CallbackPath),
    entry(Owner::Twitter, "AdditionalScopes", "", Form::Scopes),

    entry(Owner::MfaEmail, "EMailSenderAddress", "", Form::Sender),
    secret(entry(Owner::MfaEmail, "MailServerConfig", "", Form::MailServer)),
    entry(Owner::MfaEmail, "CodeLength", "6", Form::Number(4, 12)),
    entry(Owner::MfaEmail, "CodeLifetime", "00:05:00", Form::Span(10 * SECOND, HOUR)),
    entry(Owner::MfaEmail, "MaxAttempts", "5", Form::Number(1, 100)),
    entry(Owner::MfaEmail, "ResendInterval", "00:00:30", Form::Span(0, HOUR)),

    entry(Owner::MfaTotp, "Digits", "6", Form::Number(6, 8)),
    entry(Owner::MfaTotp, "Period", "00:00:30", Form::Span(10 * SECOND, 5 * MINUTE)),
    entry(Owner::MfaTotp, "Algorithm", "SHA1", Form::Choice(&["SHA1", "SHA256", "SHA512"])),
    entry(Owner::MfaTotp, "Issuer", "", Form::AuthenticatorIssuer),

    entry(Owner::MfaSms, "GatewayUrl", "", Form::Endpoint),
    secret(entry(Owner::MfaSms, "GatewayToken", "", Form::Text)),
    entry(Owner::MfaSms, "CodeLength", "6", Form::Number(4, 12)),
    entry(Owner::MfaSms, "CodeLifetime", "00:05:00", Form::Span(10 * SECOND, HOUR)),
    entry(Owner::MfaSms, "MaxAttempts", "5", Form::Number(1, 100)),
    entry(Owner::MfaSms, "ResendInterval", "00:00:30", Form::Span(0, HOUR)),

    open(entry(Owner::Tenant, "AccessTokenLifetime", "01:00:00", Form::Span(MINUTE, DAY))),
    open(entry(Owner::Tenant, "AccessTokenHeaderType", "AtJwt", Form::Choice(&["AtJwt", "Jwt"]))),
    open(entry(Owner::Tenant, "IdentityTokenLifetime", "00:20:00", Form::Span(MINUTE, DAY))),
    open(entry(Owner::Tenant, "AuthorizationCodeLifetime", "00:05:00", Form::Span(10 * SECOND, 10 * MINUTE))),
    open(entry(Owner::Tenant, "RefreshTokenLifetime", "14.00:00:00", Form::Span(MINUTE, YEAR))),
    open(entry(Owner::Tenant, "RefreshTokenAbsoluteLifetime", "90.00:00:00", Form::Span(HOUR, 10 * YEAR))),
    open(entry(Owner::Tenant, "RefreshTokenReuseLeeway", "00:00:30", Form::Span(0, 5 * MINUTE))),
    open(entry(Owner::Tenant, "DeviceCodeLifetime", "00:10:00", Form::Span(MINUTE, HOUR))),
    open(entry(Owner::Tenant, "SessionLifetime", "14.00:00:00", Form::Span(MINUTE, YEAR))),
    open(entry(Owner::Tenant, "SessionSliding", "true", Form::Flag)),
    open(entry(Owner::Tenant, "SessionAbsoluteLifetime", "90.00:00:00", Form::Span(HOUR, YEAR))),
    open(entry(Owner::Tenant, "BrowserSessionLifetime", "10:00:00", Form::Span(MINUTE, 30 * DAY))),
    open(entry(Owner::Tenant, "PkceRequired", "false", Form::Flag)),
    entry(Owner::Tenant, "PasskeySatisfiesSecondFactor", "true", Form::Flag),
    entry(Owner::Tenant, "SecondFactorEnrolment", "AtSignIn", Form::Choice(&["AtSignIn", "Administrator"])),
    entry(Owner::Tenant, "RememberDeviceLifetime", "00:00:00", Form::Span(0, YEAR)),
    open(entry(Owner::Tenant, "EmailConfirmationRequired", "false", Form::Flag)),
    open(entry(Owner::Tenant, "TermsVersion", "", Form::Text)),
    open(entry(Owner::Tenant, "TermsUrl", "", Form::Page)),
    open(entry(Owner::Tenant, "BrandName", "", Form::Text)),
    open(entry(Owner::Tenant, "BrandLogo", "", Form::Address)),
    open(entry(Owner::Tenant, "BrandColour", "", Form::Colour)),
    entry(Owner::Tenant, "PageLinks", "", Form::Links),
    entry(Owner::Tenant, "PasswordResetEnabled", "true", Form::Flag),
    open(entry(Owner::Tenant, "SignInRecordRetention", "90.00:00:00", Form::Span(DAY, 10 * YEAR))),
    open(entry(Owner::Tenant, "EventRetention", "7.00:00:00", Form::Span(DAY, 90 * DAY))),
];

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::CATALOGUE;

    #[test]
    fn defaults_are_of_their_form_and_names_unique() {
        let mut seen = HashSet::new();
        for entry in CATALOGUE {
            assert!(entry.form.fits(entry.default), "{}", entry.name);
            assert!(seen.insert((entry.owner, entry.name)), "{} twice", entry.name);
        }
    }
}
