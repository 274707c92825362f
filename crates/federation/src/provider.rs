//! Which providers there are, and what this server is there.

/// A kind of provider that speaks OpenID Connect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One whose address an administrator sets.
    OpenIdConnect,
    /// Microsoft's, for accounts of every organisation.
    Microsoft,
    /// Google's.
    Google,
}

/// The part of Microsoft's issuer that stands for the organisation.
const ANY_TENANT: &str = "{tenantid}";

impl Kind {
    /// The kind of a factory type of that name.
    pub fn named(name: &str) -> Option<Self> {
        match name {
            "OpenIdConnect" => Some(Self::OpenIdConnect),
            "Microsoft" => Some(Self::Microsoft),
            "Google" => Some(Self::Google),
            _ => None,
        }
    }

    /// The address below which the provider's discovery document is, given the option Authority.
    pub const fn authority(self, set: &str) -> &str {
        match self {
            Self::OpenIdConnect => set,
            Self::Microsoft => "https://login.microsoftonline.com/common/v2.0",
            Self::Google => "https://accounts.google.com",
        }
    }

    /// The issuer that the discovery document must name.
    pub const fn issuer(self, authority: &str) -> &str {
        match self {
            Self::Microsoft => "https://login.microsoftonline.com/{tenantid}/v2.0",
            Self::OpenIdConnect | Self::Google => authority,
        }
    }

    /// The issuer of a token whose claim `tid` is this: Microsoft names one issuer for each organisation.
    pub fn issuer_of_token(self, issuer: &str, tid: Option<&str>) -> String {
        match tid {
            // a tid that is more than an id could name another host's path
            Some(tid) if self == Self::Microsoft && chancery_record::parse_id(tid).is_some() => {
                issuer.replace(ANY_TENANT, tid)
            }
            _ => issuer.to_owned(),
        }
    }
}

/// What this server is at a provider: the instance's options.
#[derive(Clone, Debug)]
pub struct Client {
    /// The provider's kind.
    pub kind: Kind,
    /// The address below which the provider's discovery document is.
    pub authority: String,
    /// `ClientId`
    pub id: String,
    /// `AdditionalScopes`, beside `openid`, `profile` and `email`.
    pub scopes: Vec<String>,
    /// `RequestResources` (RFC 8707).
    pub resources: Vec<String>,
    /// `ScimUniqueIdentifierValues`: whose people come; none where everybody does.
    pub tenants: Vec<String>,
    /// Where the provider leads back to.
    pub redirect_uri: String,
}

impl Client {
    /// All scopes that are asked for, each once.
    pub fn all_scopes(&self) -> Vec<&str> {
        let mut all = vec!["openid", "profile", "email"];
        for scope in &self.scopes {
            if !all.contains(&scope.as_str()) {
                all.push(scope);
            }
        }
        all
    }
}
