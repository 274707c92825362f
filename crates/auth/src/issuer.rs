//! Who issues tokens: the installation, and each tenant. Each has endpoints, a key set and tokens of its
//! own: who uploaded a tenant's certificate knows its private key, and must not speak for anybody else.

use chancery_record::Value;
use chancery_store::{Error, Mode, Store};
use uuid::Uuid;

/// An issuer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// The issuer's URL: `iss` of its tokens, what its endpoints' addresses begin with.
    pub url: String,
    /// The tenant that issues; none is the installation.
    pub tenant: Option<IssuingTenant>,
}

/// A tenant that issues tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IssuingTenant {
    /// The tenant.
    pub id: Uuid,
    /// The tenant's subscription.
    pub subscription: Uuid,
}

impl Issuer {
    /// The issuer's tenant.
    pub fn tenant_id(&self) -> Option<Uuid> {
        self.tenant.map(|tenant| tenant.id)
    }

    /// The address of one of the issuer's paths.
    pub fn endpoint(&self, path: &str) -> String {
        format!("{}{path}", self.url)
    }
}

/// The URL of an issuer of the installation at this address.
pub fn issuer_url(public_url: &str, tenant: Option<Uuid>) -> String {
    tenant.map_or_else(|| public_url.to_owned(), |tenant| format!("{public_url}/t/{tenant}"))
}

/// The tenant of this id that serves: active, in an active subscription. The id must be written as it is in
/// the issuer's URL, which clients compare letter by letter.
///
/// # Errors
/// The store's.
pub async fn serving_tenant(store: &Store, text: &str) -> Result<Option<IssuingTenant>, Error> {
    let Some(id) = Uuid::try_parse(text).ok().filter(|id| id.to_string() == text) else { return Ok(None) };
    let found = store.run("FindIssuer", Mode::Quick, None, move |tx| {
        let text = "SELECT t.subscription_id FROM tenant t JOIN subscription s ON s.id = t.subscription_id \
            WHERE t.id = ?1 AND t.is_active AND s.status = 'Active'";
        tx.one(text, &[Value::Id(id)], |row| row.id(0))
    });
    Ok(found.await?.map(|subscription| IssuingTenant { id, subscription }))
}
