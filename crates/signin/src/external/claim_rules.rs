//! Runs claim rules on a provider's claims before they set fields of a platform user.

use chancery_application::ExternalProfile;
use chancery_claims::{Claim, Source};
use chancery_management::claim_rule::{ActiveRules, RuleScope, Unusable, run};
use chancery_resource::{Problem, Purpose, StoreError, Tx, Work};
use chancery_store::Mode;
use uuid::Uuid;

use super::claims::ProviderIdentity;
use crate::provider::Provider;

/// The types and values of the claims that rules forwarded.
type Ruled = Result<Vec<(String, String)>, Unusable>;

/// The tenant of an instance, unless several share it.
fn only_tenant(tx: &mut Tx<'_>, instance: Uuid) -> Result<Option<Uuid>, StoreError> {
    let text = "SELECT t.id FROM idp_instance i JOIN tenant_idp_instance l ON l.idp_instance_rid = i.rid \
        JOIN tenant t ON t.rid = l.tenant_rid WHERE i.id = ?1 LIMIT 2";
    let mut tenants = Vec::new();
    tx.query(text, &[instance.into()], |row| {
        tenants.push(row.id(0)?);
        Ok(())
    })?;
    Ok(tenants.pop().filter(|_| tenants.is_empty()))
}

impl Provider<'_> {
    /// The fields of the platform user, from the provider's claims after the rules of the instance's subscription, and of its tenant
    /// if it has one only. Tenants that share an instance share its platform users, so a TenantAdmin could set fields that client apps
    /// of other tenants trust. Destinations apply to tokens only. The inner error: the rules cannot run.
    pub(super) async fn profile_by_rules(
        self,
        identity: &ProviderIdentity,
        tenant: Uuid,
        instance: Uuid,
    ) -> Result<Result<ExternalProfile, Unusable>, Problem> {
        let reading = self.store.run("ReadProviderRules", Mode::Quick, None, move |tx| {
            let tenant = only_tenant(tx, instance)?;
            ActiveRules::read(tx, RuleScope { app: None, instance: Some(instance), tenant })
        });
        let rules = reading.await?;
        if rules.is_empty() {
            return Ok(Ok(identity.profile(&identity.claims)));
        }
        let claims = identity.claims.clone();
        let work = Work::new(Purpose::Claims, move || -> Ruled {
            let claims: Vec<Claim> = claims
                .into_iter()
                .map(|(claim_type, value)| Claim { claim_type, value, source: Source::IdentityProvider })
                .collect();
            let forwarded = run(&*rules.compile()?, claims, false)?.outcome.claims;
            Ok(forwarded.into_iter().map(|claim| (claim.claim_type, claim.value)).collect())
        });
        Ok(self.pool.run(Some(tenant), work).await?.map(|claims| identity.profile(&claims)))
    }
}
