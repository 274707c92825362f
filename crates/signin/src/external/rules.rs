//! Runs claim rules on a provider's claims before they set fields of a platform user.

use chancery_application::ExternalProfile;
use chancery_claims::{Claim, Source};
use chancery_management::claim_rule::{InForce, RuleScope, Unusable, run};
use chancery_resource::{Problem, Purpose, Work};
use chancery_store::Mode;
use uuid::Uuid;

use super::claims::ProviderIdentity;
use crate::provider::Provider;

/// The types and values of the claims that rules forwarded.
type Ruled = Result<Vec<(String, String)>, Unusable>;

impl Provider<'_> {
    /// The fields of the platform user, from the provider's claims after the rules of the instance's subscription. Rules of a tenant
    /// are not applied: tenants share the platform user, so a TenantAdmin could set fields that client apps of other tenants trust.
    /// Destinations apply to tokens only. The inner error: the rules cannot run.
    pub(super) async fn profile_by_rules(
        self,
        identity: &ProviderIdentity,
        (tenant, instance): (Uuid, Uuid),
    ) -> Result<Result<ExternalProfile, Unusable>, Problem> {
        let scope = RuleScope { app: None, instance: Some(instance), tenant: None };
        let reading =
            self.store.run("ReadProviderRules", Mode::Quick, None, move |tx| InForce::read(tx, scope));
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
