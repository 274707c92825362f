//! The issuers of tokens: the installation and each tenant. Each has its own endpoints, key set and tokens: the owner of
//! an uploaded tenant certificate knows its private key, and must not sign for another issuer.

use chancery_record::Value;
use chancery_store::{EPOCH, Error, Mode, Store, Tx, selectable};
use quick_cache::sync::Cache;
use uuid::Uuid;

use crate::canonical_id;

/// An issuer of tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Issuer {
    /// The issuer's URL: `iss` of its tokens, and the beginning of its endpoints' addresses.
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
    /// Whether its access tokens for other resource servers have the `typ` of any JWT (AccessTokenHeaderType).
    pub has_plain_type: bool,
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

/// The URL of a tenant's issuer, or of the installation's, which is its public URL.
pub fn issuer_url(public_url: &str, tenant: Option<Uuid>) -> String {
    tenant.map_or_else(|| public_url.to_owned(), |tenant| format!("{public_url}/t/{tenant}"))
}

/// Active tenants, cached until the security epoch advances.
pub struct ServingTenants(Cache<Uuid, (IssuingTenant, i64)>);

/// The number of tenants cached.
const CACHED: usize = 10_000;

impl Default for ServingTenants {
    fn default() -> Self {
        Self(Cache::new(CACHED))
    }
}

impl ServingTenants {
    /// The tenant of this id, if it is active and so is its subscription. The id must be written as it is in
    /// the issuer's URL, which clients compare letter by letter.
    pub async fn find(&self, store: &Store, text: &str) -> Result<Option<IssuingTenant>, Error> {
        match canonical_id(text) {
            Some(id) => self.of_id(store, id).await,
            None => Ok(None),
        }
    }

    /// The tenant of this id, if it is active and so is its subscription.
    pub async fn of_id(&self, store: &Store, id: Uuid) -> Result<Option<IssuingTenant>, Error> {
        if let Some((cached, epoch)) = self.0.get(&id)
            && store.epoch().await? == epoch
        {
            return Ok(Some(cached));
        }
        self.load(store, id).await
    }

    /// The tenant as of this epoch or later.
    pub async fn since(&self, store: &Store, id: Uuid, epoch: i64) -> Result<Option<IssuingTenant>, Error> {
        if let Some((cached, read_at)) = self.0.get(&id)
            && read_at >= epoch
        {
            return Ok(Some(cached));
        }
        self.load(store, id).await
    }

    async fn load(&self, store: &Store, id: Uuid) -> Result<Option<IssuingTenant>, Error> {
        let (tenant, epoch) =
            store.run("FindIssuer", Mode::Quick, None, move |tx| serving_tenant(tx, id)).await?;
        if let Some(tenant) = tenant {
            self.0.insert(id, (tenant, epoch));
        }
        Ok(tenant)
    }
}

selectable! {
    /// An active tenant.
    struct ServingTenant<'r> from "FROM tenant t JOIN subscription s ON s.id = t.subscription_id \
        WHERE t.id = ?1 AND t.is_active AND s.status = 'Active'" {
        subscription: Uuid = "t.subscription_id",
        header_type: Option<&'r str> = "(SELECT o.value FROM option_value o WHERE o.apply_to_tenant_id = t.id \
            AND o.name = 'AccessTokenHeaderType')",
    }
}

/// The tenant if it is active, and the epoch that was read first.
fn serving_tenant(tx: &mut Tx<'_>, id: Uuid) -> Result<(Option<IssuingTenant>, i64), Error> {
    let (mut tenant, mut epoch) = (None, 0);
    // the epoch is read first, so that what follows is no older
    tx.query_all(&[(EPOCH, &[]), (ServingTenant::SELECT, &[Value::Id(id)])], &mut |index, row| {
        if index == 0 {
            epoch = row.int(0)?;
        } else {
            let ServingTenant { subscription, header_type } = ServingTenant::read(row)?;
            tenant = Some(IssuingTenant { id, subscription, has_plain_type: header_type == Some("Jwt") });
        }
        Ok(())
    })?;
    Ok((tenant, epoch))
}
