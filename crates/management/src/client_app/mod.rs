//! Client apps: the clients that request tokens, for themselves or for people.

pub mod administrator;
pub mod configuration;
pub mod controller;
pub mod federated_identity;
pub mod key_set;
pub mod metadata;
mod platform;
pub(crate) mod profile;
pub mod refusal;
pub mod resource_key;
pub mod role;
mod rules;
pub mod scope_and_resource;
pub mod secret;
pub mod token_preview;
pub mod uri;

pub use rules::RESPONSE_TYPES;

use chancery_application::{APPLICATION_GROUP, APPLICATION_USER, ApplicationUser};
use chancery_record::{
    DefaultValue, FIXED, KEY, Name, OPEN, SHOWN, Token, Url, WebAddress, choice_types, id_types, record,
};
use chancery_resource::{
    Child, Op, Pairs, Reach, Relation, Shape, Unique, added_at, children, relation, standard,
};

use crate::{
    claim_rule::{CLAIM_RULE, take_client_apps},
    custom_asset::{CUSTOM_ASSET, CustomAsset},
    custom_view::{CUSTOM_VIEW, CustomView},
    idp_instance::IDP_INSTANCE,
    link::{
        CLIENT_APP_AUTHORIZED_GROUP, CLIENT_APP_AUTHORIZED_USER, CLIENT_APP_CLAIM_RULE,
        CLIENT_APP_MFA_INSTANCE, CLIENT_APP_TOKEN_EXCHANGE, IDP_INSTANCE_CLIENT_APP, TENANT_CLIENT_APP,
        within_subscription,
    },
    mfa_instance::MFA_INSTANCE,
    subscription::SubscriptionId,
    tenant::TENANT,
};

id_types! {
    /// The id of a client app.
    ClientAppId
}

choice_types! {
    /// When people are asked to consent to the access of a client app.
    AccessGrantConsent {
        /// Never: access is granted.
        Implicit,
        /// Once.
        Explicit,
        /// Each time.
        Systematic,
        /// Outside of the sign-in.
        External,
    }
    /// Whether a sign-out needs consent.
    LogoutConsent {
        /// It does not.
        Implicit,
        /// It does.
        Explicit,
    }
    /// The type of access tokens.
    AccessTokenType {
        /// A self-contained signed token (RFC 9068).
        Jwt,
        /// A reference for introspection (RFC 7662).
        Reference,
    }
    /// Security profile with requirements beyond those of OAuth.
    SecurityProfile {
        /// None.
        None,
        /// FAPI 1.0 Advanced.
        Fapi1Advanced,
        /// FAPI 2.0 Security Profile.
        Fapi2SecurityProfile,
        /// FAPI 2.0 Message Signing.
        Fapi2MessageSigning,
    }
    /// Whether authorization requests of a client app need PKCE (RFC 7636). Public and native apps need it anyway.
    Pkce {
        /// Determined by the tenant's option PkceRequired.
        AsTenant,
        /// They do.
        Required,
        /// They do not.
        Optional,
    }
    /// The claims of the person in ID tokens.
    IdTokenClaims {
        /// Those of the granted scopes, as the UserInfo endpoint has them.
        Scopes,
        /// None: they are at the UserInfo endpoint (OpenID Connect Core, section 5.4).
        Minimal,
    }
    /// When a client app gets refresh tokens for people.
    RefreshTokens {
        /// When the scope offline_access is granted. They last while the person is away.
        OfflineAccess,
        /// With every authorization code. Without offline_access they end with the session of the person.
        Session,
    }
    /// The type of the subject identifiers for a client app.
    SubjectType {
        /// The same identifier for all client apps.
        Public,
        /// An identifier for this sector alone (OpenID Connect Core, section 8.1).
        Pairwise,
    }
    /// The key management algorithm for encryption to a client (RFC 7518, section 4).
    EncryptionAlgorithm {
        /// RSA-OAEP with SHA-256.
        RsaOaep256 = "RSA-OAEP-256",
        /// RSA-OAEP with SHA-1.
        RsaOaep = "RSA-OAEP",
        /// Direct key agreement.
        EcdhEs = "ECDH-ES",
        /// Key agreement with 128-bit key wrapping.
        EcdhEsA128Kw = "ECDH-ES+A128KW",
        /// Key agreement with 256-bit key wrapping.
        EcdhEsA256Kw = "ECDH-ES+A256KW",
    }
    /// The content encryption algorithm (RFC 7518, section 5).
    ContentEncryption {
        /// AES-128-CBC with HMAC-SHA-256.
        A128CbcHs256 = "A128CBC-HS256",
        /// AES-256-CBC with HMAC-SHA-512.
        A256CbcHs512 = "A256CBC-HS512",
        /// AES-128-GCM.
        A128Gcm = "A128GCM",
        /// AES-256-GCM.
        A256Gcm = "A256GCM",
    }
    /// The signing algorithm of a client (RFC 7518, section 3).
    SigningAlgorithm {
        /// RSA with PKCS #1 v1.5 and SHA-256.
        Rs256 = "RS256",
        /// The same with SHA-384.
        Rs384 = "RS384",
        /// The same with SHA-512.
        Rs512 = "RS512",
        /// RSA-PSS with SHA-256.
        Ps256 = "PS256",
        /// The same with SHA-384.
        Ps384 = "PS384",
        /// The same with SHA-512.
        Ps512 = "PS512",
        /// ECDSA on P-256.
        Es256 = "ES256",
        /// ECDSA on P-384.
        Es384 = "ES384",
        /// ECDSA on P-521.
        Es512 = "ES512",
        /// Ed25519.
        EdDsa = "EdDSA",
    }
}

const YES: DefaultValue = DefaultValue::Bool(true);
const NO: DefaultValue = DefaultValue::Bool(false);

record! {
    /// A client app: an OAuth client that requests tokens for itself or for users.
    #[de("Client-App", "Client-Apps", "Eine Client-App: ein OAuth-Client, der Token für sich selbst oder für Benutzer anfordert.")]
    pub struct ClientApp {
        /// The client app.
        id: ClientAppId = KEY,
        /// Its name, unique in the subscription without regard to case.
        name: Name = OPEN.folded(),
        /// When users are asked to consent to access by the client app.
        #[de("Zustimmung zum Zugriff", "Wann Benutzer um Zustimmung zum Zugriff der Client-App gebeten werden.")]
        access_grant_consent: AccessGrantConsent = OPEN.or(DefaultValue::Text("Implicit")),
        /// Whether users are asked for consent before they are signed out.
        #[de("Zustimmung zur Abmeldung", "Ob Benutzer um Zustimmung gebeten werden, bevor sie abgemeldet werden.")]
        logout_consent: LogoutConsent = OPEN.or(DefaultValue::Text("Implicit")),
        /// Whether the client app can obtain tokens only for its own resources.
        #[de("Nur gelistete Ressourcen", "Ob die Client-App Token nur für ihre eigenen Ressourcen erhalten kann.")]
        resource_filter_enabled: bool = OPEN.or(NO),
        /// Whether the client app can be granted only its own scopes.
        #[de("Nur gelistete Scopes", "Ob der Client-App nur ihre eigenen Scopes gewährt werden können.")]
        scope_filter_enabled: bool = OPEN.or(NO),
        /// Address of the client app's home page.
        #[de("Startseite", "Die Adresse der Startseite der Client-App.")]
        client_uri: Option<WebAddress> = OPEN,
        /// Address of the client app's logo.
        #[de("Logo", "Die Adresse des Logos der Client-App.")]
        logo_uri: Option<WebAddress> = OPEN,
        /// Back-channel logout URI: the server notifies the client app there of a sign-out.
        #[de(
            "Adresse für Back-Channel-Logout",
            "Die Adresse für Back-Channel-Logout: Der Server benachrichtigt die Client-App dort über eine Abmeldung."
        )]
        backchannel_logout_uri: Option<WebAddress> = OPEN,
        /// Whether the logout notification must contain the session ID (`sid`).
        #[de("Sitzungs-ID im Back-Channel-Logout")]
        backchannel_logout_session_required: bool = OPEN.or(NO),
        /// Front-channel logout URI: the browser notifies the client app there of a sign-out.
        #[de(
            "Adresse für Front-Channel-Logout",
            "Die Adresse für Front-Channel-Logout: Der Browser benachrichtigt die Client-App dort über eine Abmeldung."
        )]
        frontchannel_logout_uri: Option<WebAddress> = OPEN,
        /// Whether the logout notification must contain the session ID (`sid`).
        #[de("Sitzungs-ID im Front-Channel-Logout")]
        frontchannel_logout_session_required: bool = OPEN.or(NO),
        /// Whether the client app may obtain and use tokens.
        #[de("Eingeschaltet", "Ob die Client-App Token erhalten und verwenden darf.")]
        enabled: bool = OPEN.or(YES),
        /// Whether the client app is a public client, which cannot keep a secret (RFC 6749, section 2.1).
        #[de(
            "Öffentlicher Client",
            "Ob die Client-App ein öffentlicher Client ist, der kein Geheimnis wahren kann (RFC 6749, Abschnitt 2.1)."
        )]
        is_public: bool = OPEN.or(NO),
        /// Whether the client app is a native app, which runs on the user's own device.
        #[de("Native App", "Ob die Client-App eine native App ist, die auf dem eigenen Gerät des Benutzers läuft.")]
        is_native_application: bool = OPEN.or(NO),
        /// The response types (`response_type`) that the client app may request, separated by commas.
        #[de("Antwortarten", "Die Antworttypen (`response_type`), die die Client-App anfordern darf, durch Kommas getrennt.")]
        allowed_response_types: Name = OPEN.or(DefaultValue::Text("code")).like("code"),
        /// Whether only authorized users and groups may use it.
        #[de("Nur zugewiesene Personen", "Ob nur zugelassene Personen und Gruppen sie verwenden dürfen.")]
        is_restricted: bool = OPEN.or(NO),
        /// Whether the tokens of the client app contain the groups of the user.
        #[de("Gruppen in Token", "Ob die Token der Client-App die Gruppen des Benutzers enthalten.")]
        include_groups_claims: bool = OPEN.or(NO),
        /// Whether users of other subscriptions may use the client app.
        #[de("Über Abonnements hinweg", "Ob Benutzer anderer Abonnements die Client-App verwenden dürfen.")]
        allow_cross_subscription: bool = OPEN.or(NO),
        /// Whether the client app can obtain tokens for users.
        #[de("Personen dürfen sich anmelden", "Ob die Client-App Token für Benutzer erhalten kann.")]
        allow_user_login: bool = OPEN.or(YES),
        /// Whether the client app can obtain tokens for itself (client credentials grant).
        #[de("Client-Credentials-Grant", "Ob die Client-App Token für sich selbst erhalten kann (Client-Credentials-Grant).")]
        allow_client_credential_login: bool = OPEN.or(NO),
        /// Type of the access tokens of the client app.
        #[de("Art des Zugriffstokens", "Die Art der Zugriffstoken der Client-App.")]
        access_token_type: AccessTokenType = OPEN.or(DefaultValue::Text("Jwt")),
        /// Security profile with requirements beyond those of OAuth.
        #[de("Sicherheitsprofil", "Das Sicherheitsprofil mit Anforderungen, die über die von OAuth hinausgehen.")]
        security_profile: SecurityProfile = OPEN.or(DefaultValue::Text("None")),
        /// Type of the subject identifiers (`sub`) of users for the client app.
        #[de("Bezeichner in Token", "Die Art der Bezeichner (`sub`) von Benutzern für die Client-App.")]
        subject_type: SubjectType = OPEN.or(DefaultValue::Text("Public")),
        /// Sector identifier URI: address of the list of the redirect URIs, if they have several hosts.
        #[de("Sektorkennung", "Die Adresse der Liste der Umleitungsadressen, wenn diese auf mehreren Rechnern liegen (Sektorkennung).")]
        sector_identifier_uri: Option<Url> = OPEN,
        /// Whether the access tokens of the client app are encrypted. If empty, the server's setting applies.
        #[de(
            "Zugriffstoken verschlüsseln",
            "Ob die Zugriffstoken der Client-App verschlüsselt sind. Ohne Angabe gilt die Einstellung des Servers."
        )]
        access_token_encryption_enabled_override: Option<bool> = OPEN,
        /// Key management algorithm (JWE `alg`) for encrypting ID tokens to the client app.
        #[de(
            "ID-Token: Schlüsselverschlüsselung",
            "Der Algorithmus der Schlüsselverschlüsselung (JWE `alg`) von ID-Token für die Client-App."
        )]
        id_token_encrypted_response_alg: Option<EncryptionAlgorithm> = OPEN,
        /// Content encryption algorithm (JWE `enc`) of ID tokens.
        #[de("ID-Token: Inhaltsverschlüsselung", "Der Algorithmus der Inhaltsverschlüsselung (JWE `enc`) von ID-Token.")]
        id_token_encrypted_response_enc: Option<ContentEncryption> = OPEN,
        /// Key management algorithm (JWE `alg`) for encrypting UserInfo responses to the client app.
        #[de(
            "Benutzerauskunft: Schlüsselverschlüsselung",
            "Der Algorithmus der Schlüsselverschlüsselung (JWE `alg`) von UserInfo-Antworten für die Client-App."
        )]
        userinfo_encrypted_response_alg: Option<EncryptionAlgorithm> = OPEN,
        /// Content encryption algorithm (JWE `enc`) of UserInfo responses.
        #[de("Benutzerauskunft: Inhaltsverschlüsselung", "Der Algorithmus der Inhaltsverschlüsselung (JWE `enc`) von UserInfo-Antworten.")]
        userinfo_encrypted_response_enc: Option<ContentEncryption> = OPEN,
        /// Key management algorithm (JWE `alg`) for encrypting introspection responses to the client app.
        #[de(
            "Tokenauskunft: Schlüsselverschlüsselung",
            "Der Algorithmus der Schlüsselverschlüsselung (JWE `alg`) von Introspektionsantworten für die Client-App."
        )]
        introspection_encrypted_response_alg: Option<EncryptionAlgorithm> = OPEN,
        /// Content encryption algorithm (JWE `enc`) of introspection responses.
        #[de(
            "Tokenauskunft: Inhaltsverschlüsselung",
            "Der Algorithmus der Inhaltsverschlüsselung (JWE `enc`) von Introspektionsantworten."
        )]
        introspection_encrypted_response_enc: Option<ContentEncryption> = OPEN,
        /// Whether the client app must use pushed authorization requests (RFC 9126).
        #[de("Vorab hinterlegte Anfragen verlangen", "Ob die Client-App ihre Autorisierungsanfragen vorab übermitteln muss (RFC 9126).")]
        require_pushed_authorization_requests: bool = OPEN.or(NO),
        /// Required signing algorithm of the client app's request objects (RFC 9101).
        #[de("Anfrage: Signatur", "Der erforderliche Signaturalgorithmus der Request-Objekte der Client-App (RFC 9101).")]
        request_object_signing_alg: Option<SigningAlgorithm> = OPEN,
        /// Key management algorithm (JWE `alg`) of the client app's request objects.
        #[de(
            "Anfrage: Schlüsselverschlüsselung",
            "Der Algorithmus der Schlüsselverschlüsselung (JWE `alg`) der Request-Objekte der Client-App."
        )]
        request_object_encryption_alg: Option<EncryptionAlgorithm> = OPEN,
        /// Content encryption algorithm (JWE `enc`) of the client app's request objects.
        #[de(
            "Anfrage: Inhaltsverschlüsselung",
            "Der Algorithmus der Inhaltsverschlüsselung (JWE `enc`) der Request-Objekte der Client-App."
        )]
        request_object_encryption_enc: Option<ContentEncryption> = OPEN,
        /// Whether the client app may use the device authorization grant (RFC 8628).
        #[de("Device-Authorization-Grant", "Ob die Client-App den Device-Authorization-Grant verwenden darf (RFC 8628).")]
        allow_device_authorization_grant: bool = OPEN.or(NO),
        /// Whether authorization requests of the client app must use PKCE.
        #[de("PKCE", "Ob Autorisierungsanfragen der Client-App PKCE verwenden müssen.")]
        pkce: Pkce = OPEN.or(DefaultValue::Text("AsTenant")),
        /// The claims about the user that ID tokens for the client app contain.
        #[de("Angaben in ID-Token", "Die Claims über den Benutzer, die ID-Token für die Client-App enthalten.")]
        id_token_claims: IdTokenClaims = OPEN.or(DefaultValue::Text("Scopes")),
        /// When the client app receives refresh tokens for users.
        #[de("Refresh-Token", "Wann die Client-App Refresh-Token für Benutzer erhält.")]
        refresh_tokens: RefreshTokens = OPEN.or(DefaultValue::Text("OfflineAccess")),
        /// The subscription. If it is missing and `Default` is the only one, `Default` applies.
        subscription_id: Option<SubscriptionId> = FIXED,
        /// Concurrency token. It changes with every write to the client app.
        concurrency_token: Token = SHOWN,
    }
}

/// The reach of client apps.
static ASSIGNED: Reach =
    Reach::Assigned(ClientApp::SUBSCRIPTION_ID.field(), "tenant_client_app", "client_app_rid");

impl ClientApp {
    /// The metadata entries, by key.
    const METADATA: Relation = Relation::new(
        "metadata",
        "The metadata entries, by key.",
        Pairs { table: "client_app_metadata", own: "client_app_rid", other: "rid" },
        &metadata::CLIENT_APP_METADATA,
    )
    .showing(&[
        metadata::ClientAppMetadata::KEY.field(),
        metadata::ClientAppMetadata::VALUE.field(),
        metadata::ClientAppMetadata::CONCURRENCY_TOKEN.field(),
    ]);
    /// The claim rules of level ClientApp that apply to it.
    pub const CLAIM_RULES: Relation = Relation::new(
        "claimRules",
        "The claim rules of level ClientApp that apply to it.",
        CLIENT_APP_CLAIM_RULE.forward(),
        &CLAIM_RULE,
    )
    .guarded(|tx, links| {
        take_client_apps(tx, links.others)?;
        within_subscription(tx, links)
    });
    /// The platform users who may use it while it is restricted.
    pub const AUTHORIZED_PLATFORM_USERS: Relation = Relation::new(
        "authorizedPlatformUsers",
        "The platform users who may use it while it is restricted.",
        CLIENT_APP_AUTHORIZED_USER.forward(),
        &APPLICATION_USER,
    )
    .guarded(within_subscription)
    .showing(&[
        ApplicationUser::ID.field(),
        ApplicationUser::FIRST_NAME.field(),
        ApplicationUser::LAST_NAME.field(),
        ApplicationUser::EMAIL_ADDRESS.field(),
    ]);
    /// The platform groups whose members may use it while it is restricted.
    pub const AUTHORIZED_PLATFORM_GROUPS: Relation = Relation::new(
        "authorizedPlatformGroups",
        "The platform groups whose members may use it while it is restricted.",
        CLIENT_APP_AUTHORIZED_GROUP.forward(),
        &APPLICATION_GROUP,
    )
    .guarded(within_subscription);
    /// The client apps that may exchange its tokens (RFC 8693).
    pub const ALLOWED_TOKEN_EXCHANGE_CLIENT_APPS: Relation = Relation::new(
        "allowedTokenExchangeClientApps",
        "The client apps that may exchange its tokens (RFC 8693).",
        CLIENT_APP_TOKEN_EXCHANGE.forward(),
        &CLIENT_APP,
    )
    .guarded(within_subscription);
    /// The tenants to which it is assigned.
    pub const TENANTS: Relation = Relation::new(
        "tenants",
        "The tenants to which it is assigned.",
        TENANT_CLIENT_APP.reverse(),
        &TENANT,
    )
    .guarded(within_subscription);
    /// The identity provider instances offered for sign-in to the client app.
    pub const IDP_INSTANCES: Relation = Relation::new(
        "idpInstances",
        "The identity provider instances offered for sign-in to the client app.",
        IDP_INSTANCE_CLIENT_APP.reverse(),
        &IDP_INSTANCE,
    )
    .guarded(within_subscription);
    /// The second factors that it requires.
    pub const MFA_INSTANCES: Relation = Relation::new(
        "mfaInstances",
        "The second factors required for sign-in to the client app.",
        CLIENT_APP_MFA_INSTANCE.forward(),
        &MFA_INSTANCE,
    )
    .guarded(within_subscription);
}

/// The shape of client apps.
pub static CLIENT_APP: Shape =
    Shape::of::<ClientApp>("ClientApp", "client_app", Reach::Unless(&ASSIGNED, administrator::is_no_higher))
        .unique(&[
            Unique::new("client_app__id", &[ClientApp::ID.field()]),
            Unique::new(
                "client_app__subscription_id__name_key",
                &[ClientApp::SUBSCRIPTION_ID.field(), ClientApp::NAME.field()],
            ),
        ])
        .held_by(&[
            Child::new("asset", &CUSTOM_ASSET, CustomAsset::CLIENT_APP_ID, CustomAsset::LOCATION),
            Child::new("view", &CUSTOM_VIEW, CustomView::CLIENT_APP_ID, CustomView::LOCATION),
        ])
        .relations(
            const {
                &[
                    children!(
                        "clientAppRedirectUris",
                        "The redirect URIs of the client app.",
                        "client_app",
                        "client_app_redirect_uri",
                        "client_app_id",
                        &uri::CLIENT_APP_REDIRECT_URI
                    ),
                    children!(
                        "clientAppKeySets",
                        "The client app's own key sets.",
                        "client_app",
                        "client_app_key_set",
                        "client_app_id",
                        &key_set::CLIENT_APP_KEY_SET
                    ),
                    children!(
                        "clientAppResources",
                        "The resources for which the client app can obtain tokens.",
                        "client_app",
                        "client_app_resource",
                        "client_app_id",
                        &scope_and_resource::CLIENT_APP_RESOURCE
                    ),
                    children!(
                        "clientAppSecrets",
                        "The secrets of the client app, without their values.",
                        "client_app",
                        "client_app_secret",
                        "client_app_id",
                        &secret::CLIENT_APP_SECRET
                    ),
                    children!(
                        "clientAppRequestUris",
                        "The request URIs of the client app: the addresses of its request objects.",
                        "client_app",
                        "client_app_request_uri",
                        "client_app_id",
                        &uri::CLIENT_APP_REQUEST_URI
                    ),
                    children!(
                        "clientAppFederatedIdentities",
                        "The federated identities of the client app, whose tokens can be used instead of its own secret.",
                        "client_app",
                        "client_app_federated_identity",
                        "client_app_id",
                        &federated_identity::CLIENT_APP_FEDERATED_IDENTITY
                    ),
                    ClientApp::METADATA,
                    ClientApp::CLAIM_RULES,
                    children!(
                        "clientAppScopes",
                        "The scopes that the client app can be granted.",
                        "client_app",
                        "client_app_scope",
                        "client_app_id",
                        &scope_and_resource::CLIENT_APP_SCOPE
                    ),
                    ClientApp::AUTHORIZED_PLATFORM_USERS,
                    ClientApp::AUTHORIZED_PLATFORM_GROUPS,
                    ClientApp::ALLOWED_TOKEN_EXCHANGE_CLIENT_APPS,
                    ClientApp::TENANTS,
                    ClientApp::IDP_INSTANCES,
                    ClientApp::MFA_INSTANCES,
                    children!(
                        "clientAppAuthenticationConfiguration",
                        "Client authentication of the client app. Null while the default applies.",
                        "client_app",
                        "client_app_authentication_configuration",
                        "client_app_id",
                        &configuration::CLIENT_APP_AUTHENTICATION_CONFIGURATION
                    )
                    .single(),
                ]
            },
        )
        .ruled::<ClientApp>()
        .validate_rows(rules::check)
        .after_insert(controller::note_creator)
        .protected_by(&platform::PROTECTION)
        .postcondition(administrator::require_system_admin)
        .bumps_epoch();

/// The operations on client apps. The documents list neither the operations on a single one nor the DELETE of many.
pub static OPERATIONS: [Op; 9] = added_at(
    standard!("ClientApp", "/ClientApp", TenantMember, SubscriptionAdmin, &CLIENT_APP),
    [2, 3, 4, 5, 8],
);
/// Operations on a client app's tenants.
pub static TENANTS: [Op; 3] = added_at(
    relation!("ClientAppTenants", "/ClientApp/{id}/tenants", TenantMember, &CLIENT_APP, ClientApp::TENANTS),
    [0, 1],
);
/// Operations on a client app's instances.
pub static IDP_INSTANCES: [Op; 3] = relation!(
    "ClientAppIdpInstances",
    "/ClientApp/{id}/idpinstances",
    SubscriptionAdmin,
    &CLIENT_APP,
    ClientApp::IDP_INSTANCES
);
/// Operations on a client app's second factors.
pub static MFA_INSTANCES: [Op; 3] = relation!(
    "ClientAppMfaInstances",
    "/ClientApp/{id}/mfainstances",
    SubscriptionAdmin,
    &CLIENT_APP,
    ClientApp::MFA_INSTANCES
);
/// Operations on a client app's claim rules.
pub static CLAIM_RULES: [Op; 3] = relation!(
    "ClientAppClaimRules",
    "/ClientApp/{id}/claimrules",
    SubscriptionAdmin,
    &CLIENT_APP,
    ClientApp::CLAIM_RULES
);
/// Operations on the client apps that may exchange a client app's tokens.
pub static TOKEN_EXCHANGE: [Op; 3] = relation!(
    "ClientAppAllowedTokenExchangeClientApps",
    "/ClientApp/{id}/allowedtokenexchangeclientapps",
    SubscriptionAdmin,
    &CLIENT_APP,
    ClientApp::ALLOWED_TOKEN_EXCHANGE_CLIENT_APPS
);
/// Operations on the platform users who may use a client app.
pub static AUTHORIZED_USERS: [Op; 3] = relation!(
    "ClientAppAuthorizedUsers",
    "/ClientApp/{id}/authorizedusers",
    TenantMember,
    &CLIENT_APP,
    ClientApp::AUTHORIZED_PLATFORM_USERS
);
/// Operations on the platform groups whose members may use a client app.
pub static AUTHORIZED_GROUPS: [Op; 3] = relation!(
    "ClientAppAuthorizedGroups",
    "/ClientApp/{id}/authorizedgroups",
    TenantMember,
    &CLIENT_APP,
    ClientApp::AUTHORIZED_PLATFORM_GROUPS
);
