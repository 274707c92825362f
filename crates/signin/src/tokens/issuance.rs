//! Issuing tokens with claim rules: the rules run outside of transactions, and if they cannot run, no tokens are
//! issued.

use std::sync::Arc;

use chancery_auth::OAuthError;
use chancery_management::claim_rule::Unusable;
use chancery_record::Timestamp;
use chancery_resource::{Context, Problem, Scope, StoreError, Tx};
use chancery_store::Mode;

use crate::{
    claims::{Issuance, Pending, ReleasedClaims},
    grant::granted::Granted,
    provider::Provider,
    session::sign_in_record::{SignInOutcome, SignInRecord},
};

/// How long a further failure of the rules for the same person and client app writes no record, in ms.
const QUIET: i64 = 3_600_000;

const UNUSABLE: OAuthError = OAuthError::new(
    500,
    "server_error",
    "The claim rules in force cannot run, so there are no tokens. The server's log says why.",
);

/// Why no claims were released.
pub enum RulesFailed {
    /// An error of the store.
    Store(StoreError),
    /// The rules cannot run. It is logged and recorded.
    Unusable,
}

impl From<StoreError> for RulesFailed {
    fn from(error: StoreError) -> Self {
        Self::Store(error)
    }
}

impl From<RulesFailed> for OAuthError {
    fn from(reason: RulesFailed) -> Self {
        match reason {
            RulesFailed::Store(error) => error.into(),
            RulesFailed::Unusable => UNUSABLE,
        }
    }
}

impl From<RulesFailed> for Problem {
    fn from(reason: RulesFailed) -> Self {
        match reason {
            RulesFailed::Store(error) => error.into(),
            RulesFailed::Unusable => {
                Self::from(StoreError::Internal("the claim rules in force cannot run".into()))
            }
        }
    }
}

impl Provider<'_> {
    /// Runs a transaction that issues tokens. If claim rules are in force, it stops before it writes, and runs again
    /// with the claims from the rules.
    ///
    /// # Errors
    /// [`OAuthError`], which the endpoint answers.
    pub(crate) async fn issue_with_rules<T: Send + 'static>(
        self,
        name: &'static str,
        now: Timestamp,
        issuing: impl Fn(
            &mut Tx<'_>,
            Option<&Arc<ReleasedClaims>>,
        ) -> Result<Result<Issuance<T>, OAuthError>, Problem>
        + Send
        + Sync
        + 'static,
    ) -> Result<T, OAuthError> {
        let issuing = Arc::new(issuing);
        let first = Arc::clone(&issuing);
        let issued = self.store.run(name, Mode::Write, None, move |tx| first(tx, None)).await??;
        let pending = match issued {
            Issuance::Done(done) => return Ok(done),
            Issuance::Rules(pending) => pending,
        };
        let released = Arc::new(self.run_claim_rules(*pending, now).await?);
        let issued =
            self.store.run(name, Mode::Write, None, move |tx| issuing(tx, Some(&released))).await??;
        match issued {
            Issuance::Done(done) => Ok(done),
            Issuance::Rules(_) => Err(StoreError::Internal(format!("{name} asks for rules twice")).into()),
        }
    }

    /// Runs claim rules in the pool.
    ///
    /// # Errors
    /// The database fails, or the rules cannot run.
    pub(crate) async fn run_claim_rules(
        self,
        pending: Pending,
        now: Timestamp,
    ) -> Result<ReleasedClaims, RulesFailed> {
        let (granted, application) = (pending.granted.clone(), pending.application);
        let detail = match self.pool.run(Some(granted.tenant), pending.work()).await? {
            Ok(released) => return Ok(released),
            Err(Unusable(detail)) => detail,
        };
        let (context, about) = (Arc::clone(self.context), granted.clone());
        let recording = self.store.run("RecordUnusableRules", Mode::Write, None, move |tx| {
            let context = Context::of_server(&context, Scope::Everything, now);
            record(&context, tx, &about, application)
        });
        let is_new = recording
            .await
            .map_err(|problem: Problem| problem.cause.unwrap_or(StoreError::Internal(problem.detail)))?;
        if is_new {
            let (tenant, instance) = (granted.tenant, granted.instance);
            tracing::error!(%application, %tenant, %instance, detail, "claim rules cannot run: no tokens");
        }
        Err(RulesFailed::Unusable)
    }
}

/// Records that rules cannot run, unless that was recorded recently for the same person and client app. Returns
/// whether it is new.
fn record(
    context: &Context,
    tx: &mut Tx<'_>,
    granted: &Granted,
    application: uuid::Uuid,
) -> Result<bool, Problem> {
    let text = "SELECT 1 FROM sign_in_record WHERE person_id = ?1 AND client_app_id = ?2 AND reason = 'ClaimRules' \
        AND occurred_on > ?3 LIMIT 1";
    let since = context.now.plus(-QUIET);
    let key = [granted.person.into(), application.into(), since.0.into()];
    if tx.one(text, &key, |_| Ok(()))?.is_some() {
        return Ok(false);
    }
    let record = SignInRecord {
        outcome: SignInOutcome::RulesUnusable,
        tenant: granted.tenant,
        application: Some(application),
        instance: Some(granted.instance),
        person: granted.person,
        methods: &[],
        acr: None,
        session: granted.session,
        origin: None,
    };
    record.write(context, tx)?;
    Ok(true)
}
