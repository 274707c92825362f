//! The claim rules in force for a sign-in, and their execution. The dry run and every token issuer use these functions, so that
//! they agree.

use std::{cell::OnceCell, sync::Arc, time::Instant};

use aws_lc_rs::digest::{SHA256, digest};
use chancery_claims::{Claim, Fault, Rule, RuleSet, RuleSetCache, RuleSetError};
use chancery_record::Record as _;
use chancery_resource::{Problem, Sql, Tx};
use uuid::Uuid;

use super::{CLAIM_RULE, ClaimRule, outcome::Evaluation};
use crate::slow_validation::TIME;

/// The maximum number of rules in force at once.
const MAX_RULES: usize = 1_000;
/// The maximum number of unusable rules that an error names.
const MAX_REPORTED: usize = 10;

/// Cache of the rule sets that this process compiled last.
static COMPILED: RuleSetCache = RuleSetCache::new();

/// The scope of rules: any of a client app, an instance and a tenant.
#[derive(Clone, Copy, Debug, Default)]
pub struct RuleScope {
    /// The client app that tokens are for, with its row number.
    pub app: Option<(Uuid, i64)>,
    /// The identity provider instance of the person.
    pub instance: Option<Uuid>,
    /// The tenant that the person signs in at.
    pub tenant: Option<Uuid>,
}

/// The reason why the rules in force cannot be run on these claims, for people.
#[derive(Clone, Debug)]
pub struct Unusable(pub String);

/// The active rules in a scope, not compiled yet.
#[derive(Clone, Debug)]
pub struct ActiveRules {
    rules: Vec<Rule>,
    key: Vec<u8>,
}

impl ActiveRules {
    /// Reads the rules of the subscription, the tenant, the client app, and the client app with the instance.
    ///
    /// # Errors
    /// A stored rule is unknown to this release.
    pub fn read(tx: &mut Tx<'_>, scope: RuleScope) -> Result<Self, Problem> {
        let sql = statement(scope);
        let kinds: Vec<_> = CLAIM_RULE.fields.iter().map(|field| field.kind).collect();
        let mut rules = Vec::new();
        tx.query(&sql.text, &sql.parameters, |row| {
            let values = kinds
                .iter()
                .enumerate()
                .map(|(at, kind)| row.value(at, kind))
                .collect::<Result<Vec<_>, _>>()?;
            rules.push(values);
            Ok(())
        })?;
        let rules = rules.into_iter().map(ClaimRule::from_values).collect::<Result<Vec<_>, _>>()?;
        let versions =
            rules.iter().flat_map(|rule| [rule.id.0.as_bytes(), rule.concurrency_token.as_str().as_bytes()]);
        let key = digest(&SHA256, &versions.collect::<Vec<_>>().concat()).as_ref().to_vec();
        let rules = rules.iter().map(ClaimRule::known).collect::<Result<_, _>>()?;
        Ok(Self { rules, key })
    }

    /// Whether no rule applies: then all claims are forwarded.
    pub const fn is_empty(&self) -> bool {
        self.rules.is_empty()
    }

    /// The key of the compiled rules, see [`compiled`].
    pub fn key(&self) -> &[u8] {
        &self.key
    }

    /// Compiles the rules, or returns them from the cache. Takes up to [`TIME`] of CPU: call it outside of transactions.
    ///
    /// # Errors
    /// There are too many rules; they cannot be compiled, or not in that time.
    pub fn compile(&self) -> Result<Arc<RuleSet>, Unusable> {
        self.check_count()?;
        within_time(|go_on| COMPILED.compiled(&self.key, &self.rules, go_on)).map_err(unusable)
    }

    /// Compiles the rules after a tentative change. The result is not cached.
    ///
    /// # Errors
    /// As for [`ActiveRules::compile`].
    pub fn compile_with(mut self, change: impl FnOnce(&mut Vec<Rule>)) -> Result<Arc<RuleSet>, Unusable> {
        self.check_count()?;
        change(&mut self.rules);
        within_time(|go_on| RuleSet::new(&self.rules, go_on)).map(Arc::new).map_err(unusable)
    }

    fn check_count(&self) -> Result<(), Unusable> {
        if self.rules.len() <= MAX_RULES {
            return Ok(());
        }
        let detail = format!("More than {MAX_RULES} rules are in force at once: there are too many.");
        Err(Unusable(detail))
    }
}

/// The compiled rules of this key, if they are in the cache of this process.
pub fn compiled(key: &[u8]) -> Option<Arc<RuleSet>> {
    COMPILED.get(key)
}

/// Runs claims through rules. Takes up to [`TIME`] of CPU: call it outside of transactions.
///
/// # Errors
/// A bound of the claims is exceeded, or the time.
pub fn run(set: &RuleSet, claims: Vec<Claim>, traces: bool) -> Result<Evaluation, Unusable> {
    let evaluated = within_time(|go_on| {
        if traces {
            set.trace(claims, go_on).map(|(outcome, steps)| (outcome, Some(steps)))
        } else {
            set.evaluate(claims, go_on).map(|outcome| (outcome, None))
        }
    });
    let (outcome, steps) = evaluated.map_err(|exceeded| Unusable(format!("{exceeded}.")))?;
    Ok(Evaluation { outcome, steps, in_force: set.ids().collect() })
}

/// Runs work with a time limit. The time starts with the first check of the limit: before, the work may wait for other work.
fn within_time<T>(work: impl FnOnce(chancery_claims::TimeCheck<'_>) -> T) -> T {
    let started = OnceCell::new();
    work(&|| started.get_or_init(Instant::now).elapsed() < TIME)
}

fn unusable(error: RuleSetError) -> Unusable {
    Unusable(match error {
        RuleSetError::Faults(faults) => describe(&faults),
        RuleSetError::Time => "The rules in force take too long to compile: there are too many.".to_owned(),
    })
}

fn describe(faults: &[Fault]) -> String {
    let faults: Vec<String> = faults
        .iter()
        .take(MAX_REPORTED)
        .map(|fault| format!("{} of rule {}: {}", fault.member, fault.rule, fault.detail))
        .collect();
    format!("A rule in force cannot be used: {}.", faults.join("; "))
}

fn statement(scope: RuleScope) -> Sql {
    let columns = CLAIM_RULE.fields.iter().map(|field| format!("t.{}", field.column));
    let columns = columns.collect::<Vec<_>>().join(", ");
    let mut sql = Sql::new("SELECT ").push(&columns).push(" FROM claim_rule t WHERE t.is_active AND (FALSE");
    let app = scope.app.map(|(id, _)| id);
    for (table, id) in [("client_app", app), ("tenant", scope.tenant), ("idp_instance", scope.instance)] {
        if let Some(id) = id {
            sql = sql.push(&format!(
                " OR (t.rule_level = 'Subscription' AND t.apply_to_subscription_id = (SELECT subscription_id FROM {table} WHERE id = "
            ));
            sql = sql.bind(id).push("))");
        }
    }
    if let Some(id) = scope.tenant {
        sql = sql.push(" OR (t.rule_level = 'Tenant' AND t.apply_to_tenant_id = ").bind(id).push(")");
    }
    if let Some((_, rid)) = scope.app {
        sql = sql.push(
            " OR (t.rid IN (SELECT m.claim_rule_rid FROM client_app_claim_rule m WHERE m.client_app_rid = ",
        );
        sql = sql.bind(rid).push(") AND (t.rule_level = 'ClientApp'");
        if let Some(id) = scope.instance {
            sql = sql
                .push(" OR (t.rule_level = 'ClientAppIdpInstance' AND t.apply_to_idp_instance_id = ")
                .bind(id)
                .push(")");
        }
        sql = sql.push("))");
    }
    sql.add(&format!(") ORDER BY t.priority, t.id LIMIT {}", MAX_RULES + 1));
    sql
}
