//! Which providers there are, where they are, and what this server is there.

/// A kind of external identity provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
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

/// Where the providers are whose addresses are the same for everybody. Tests replace them; no setting does.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// Microsoft's OpenID provider, without the organisation.
    pub microsoft: String,
    /// Google's OpenID provider.
    pub google: String,
    /// Where people sign in to Facebook.
    pub facebook: String,
    /// Facebook's Graph API.
    pub facebook_api: String,
    /// Where people sign in to Twitter.
    pub twitter: String,
    /// Twitter's API.
    pub twitter_api: String,
}

impl Default for Addresses {
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

/// The part of Microsoft's issuer that stands for the organisation.
const ANY_TENANT: &str = "{tenantid}";
/// The part of Microsoft's authority that stands for all organisations.
const ALL_TENANTS: &str = "common";

impl Kind {
    /// All kinds.
    pub const ALL: [Self; 6] =
        [Self::OpenIdConnect, Self::AdfsOAuth, Self::Microsoft, Self::Google, Self::Facebook, Self::Twitter];

    /// Its name: that of the factory type.
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

    /// The kind of a factory type of that name.
    pub fn named(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }

    /// The address of the provider, given the option Authority. A discovery document is below it, where there is one.
    pub fn authority(self, set: &str, addresses: &Addresses) -> String {
        match self {
            Self::OpenIdConnect | Self::AdfsOAuth => set.to_owned(),
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

    /// The issuer of a token whose claim `tid` is this: Microsoft names one issuer for each organisation. `None` where no organisation is
    /// named.
    pub fn issuer_of_token(self, issuer: &str, tid: Option<&str>) -> Option<String> {
        if self != Self::Microsoft {
            return Some(issuer.to_owned());
        }
        // a tid that is more than an id could name another host's path
        let tid = tid.filter(|tid| chancery_record::parse_id(tid).is_some())?;
        Some(issuer.replace(ANY_TENANT, tid))
    }

    /// Whether it is an OpenID provider, or may be one.
    pub const fn has_id_tokens(self) -> bool {
        !matches!(self, Self::Facebook | Self::Twitter)
    }

    /// Whether it tells when somebody signed in, where that is asked for. Google does not, and takes no `prompt=login`.
    pub const fn tells_time(self) -> bool {
        self.has_id_tokens() && !matches!(self, Self::Google)
    }

    /// The scopes that are always asked for.
    const fn scopes(self) -> &'static [&'static str] {
        match self {
            Self::OpenIdConnect | Self::AdfsOAuth | Self::Microsoft | Self::Google => {
                &["openid", "profile", "email"]
            }
            Self::Facebook => &["public_profile", "email"],
            // without tweet.read, the profile is refused
            Self::Twitter => &["users.read", "tweet.read"],
        }
    }
}

/// What this server is at a provider: the instance's options.
#[derive(Clone, Debug)]
pub struct Client {
    /// The provider's kind.
    pub kind: Kind,
    /// The address of the provider. A discovery document is below it, where there is one.
    pub authority: String,
    /// `ClientId`
    pub id: String,
    /// `AdditionalScopes`, beside those that are always asked for.
    pub scopes: Vec<String>,
    /// `RequestResources` (RFC 8707).
    pub resources: Vec<String>,
    /// `ScimUniqueIdentifierValues`: whose people come; none where everybody does.
    pub tenants: Vec<String>,
    /// `ScimSubjectClaim`: the claim that is compared with the subject of an identity.
    pub subject_claim: String,
    /// Where the provider leads back to.
    pub redirect_uri: String,
}

impl Client {
    /// All scopes that are asked for, each once.
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
