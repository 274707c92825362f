//! The kinds of providers, their addresses, and this server's registration at a provider.

/// A kind of external identity provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ProviderKind {
    /// An OpenID provider whose address an administrator sets.
    OpenIdConnect,
    /// Active Directory Federation Services.
    AdfsOAuth,
    /// Microsoft's OpenID provider, for accounts of every organisation.
    Microsoft,
    /// Google's OpenID provider.
    Google,
    /// Facebook: OAuth 2.0, and a profile.
    Facebook,
    /// Twitter, now X: OAuth 2.0, and a profile.
    Twitter,
}

/// The base URLs of the providers with fixed addresses. Only tests replace them; there is no setting.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProviderAddresses {
    /// Microsoft's OpenID provider, without the organisation.
    pub microsoft: String,
    /// Google's OpenID provider.
    pub google: String,
    /// Facebook's sign-in.
    pub facebook: String,
    /// Facebook's Graph API.
    pub facebook_api: String,
    /// Twitter's sign-in.
    pub twitter: String,
    /// Twitter's API.
    pub twitter_api: String,
}

impl Default for ProviderAddresses {
    fn default() -> Self {
        let [microsoft, google, facebook, facebook_api, twitter, twitter_api] = [
            "https://login.microsoftonline.com",
            "https://accounts.google.com",
            "https://www.facebook.com",
            "https://graph.facebook.com",
            "https://x.com",
            "https://api.x.com",
        ]
        .map(str::to_owned);
        Self { microsoft, google, facebook, facebook_api, twitter, twitter_api }
    }
}

/// The placeholder for the organisation in Microsoft's issuer.
const ANY_TENANT: &str = "{tenantid}";
/// The path segment for all organisations in Microsoft's authority.
const ALL_TENANTS: &str = "common";

impl ProviderKind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::OpenIdConnect, Self::AdfsOAuth, Self::Microsoft, Self::Google, Self::Facebook, Self::Twitter];

    /// The name of the factory type.
    pub const fn name(self) -> &'static str {
        match self {
            Self::OpenIdConnect => "OpenIdConnect",
            Self::AdfsOAuth => "AdfsOAuth",
            Self::Microsoft => "Microsoft",
            Self::Google => "Google",
            Self::Facebook => "Facebook",
            Self::Twitter => "Twitter",
        }
    }

    /// The kind of a factory type.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The provider's authority, the base URL of its discovery document. `option` is the value of the option Authority.
    pub fn authority(self, option: &str, addresses: &ProviderAddresses) -> String {
        match self {
            Self::OpenIdConnect | Self::AdfsOAuth => option.to_owned(),
            Self::Microsoft => format!("{}/{ALL_TENANTS}/v2.0", addresses.microsoft),
            Self::Google => addresses.google.clone(),
            Self::Facebook => addresses.facebook.clone(),
            Self::Twitter => addresses.twitter.clone(),
        }
    }

    /// The issuer that the discovery document must name.
    pub fn issuer(self, authority: &str) -> String {
        if self == Self::Microsoft {
            return authority.replace(&format!("/{ALL_TENANTS}/"), &format!("/{ANY_TENANT}/"));
        }
        authority.to_owned()
    }

    /// The issuer that a token with this `tid` must name: Microsoft has an issuer for each organisation. `None` if `tid` names no
    /// organisation.
    pub fn issuer_of_token(self, issuer: &str, tid: Option<&str>) -> Option<String> {
        if self != Self::Microsoft {
            return Some(issuer.to_owned());
        }
        // only an id: other text could change the path of the URL
        let tid = tid.filter(|tid| chancery_record::parse_id(tid).is_some())?;
        Some(issuer.replace(ANY_TENANT, tid))
    }

    /// Whether the provider can issue ID tokens.
    pub const fn has_id_tokens(self) -> bool {
        !matches!(self, Self::Facebook | Self::Twitter)
    }

    /// Whether the provider returns `auth_time` on request. Google does not, and does not support `prompt=login`.
    pub const fn reports_auth_time(self) -> bool {
        self.has_id_tokens() && !matches!(self, Self::Google)
    }

    /// The scopes that are always requested.
    const fn scopes(self) -> &'static [&'static str] {
        match self {
            Self::OpenIdConnect | Self::AdfsOAuth | Self::Microsoft | Self::Google => {
                &["openid", "profile", "email"]
            }
            Self::Facebook => &["public_profile", "email"],
            // the profile endpoint requires tweet.read, too
            Self::Twitter => &["users.read", "tweet.read"],
        }
    }
}

/// This server's registration as a client of a provider, from the options of the instance.
#[derive(Clone, Debug)]
pub struct Client {
    /// The provider's kind.
    pub kind: ProviderKind,
    /// The provider's authority, the base URL of its discovery document.
    pub authority: String,
    /// `ClientId`
    pub id: String,
    /// `AdditionalScopes`, requested in addition to the default ones.
    pub scopes: Vec<String>,
    /// `RequestResources` (RFC 8707).
    pub resources: Vec<String>,
    /// `ScimUniqueIdentifierValues`: the accepted organisations; empty if all are accepted.
    pub tenants: Vec<String>,
    /// `ScimSubjectClaim`: the claim that is compared with the subject of an identity.
    pub subject_claim: String,
    /// The URL of the callback.
    pub redirect_uri: String,
}

impl Client {
    /// All requested scopes, without duplicates.
    pub fn all_scopes(&self) -> Vec<&str> {
        let mut all = self.kind.scopes().to_vec();
        for scope in &self.scopes {
            if !all.contains(&scope.as_str()) {
                all.push(scope);
            }
        }
        all
    }
}
