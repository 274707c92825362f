//! Claim rules: which claims go into which tokens, and how they are rewritten.

mod draft;
mod evaluate;
mod in_force;
mod link;
mod outcome;

use chancery_claims::{Member, Rule};
use chancery_record::{
    DefaultValue, FIXED, KEY, Name, OPEN, PatternText, Record as _, SHOWN, Token, choice_types, id_types,
    record,
};
use chancery_resource::{
    FieldFault, Findings, Op, Parent, Problem, ProposedRow, ProvidedFields, Purpose, Reach, Relation, Rules,
    Shape, StoreError, Tx, Unique, Violation, Writer, relation, standard,
};
use uuid::Uuid;

pub use link::take_client_apps;
use link::{has_no_client_apps, with_client_apps};

use crate::{
    client_app::CLIENT_APP,
    idp_instance::{IDP_INSTANCE, IdpInstanceId},
    link::{CLIENT_APP_CLAIM_RULE, within_subscription},
    owning_subscription::resolve_subscription,
    slow_validation::validate_items,
    subscription::SubscriptionId,
    tenant::{TENANT, TenantId},
    violation::violation_at,
};

pub use evaluate::OPERATIONS as EVALUATE;
pub use in_force::{ActiveRules, RuleScope, Unusable, compiled, run};
pub use outcome::Evaluation;

id_types! {
    /// The id of a claim rule.
    ClaimRuleId
}

choice_types! {
    /// The type of a rule.
    RuleType {
        /// Forwards matching claims.
        Filter,
        /// Forwards matching claims, rewritten.
        Transform,
        /// Adds a claim.
        Add,
        /// Forwards claims that do not match.
        Remove,
    }
    /// The part of a claim that a rule matches or rewrites.
    ClaimTarget {
        /// Its type.
        ClaimType,
        /// Its value.
        ClaimValue,
        /// Both.
        ClaimTypeAndValue,
    }
    /// Where a rule applies.
    RuleLevel {
        /// To all of a subscription.
        Subscription,
        /// To a tenant.
        Tenant,
        /// To client apps.
        ClientApp,
        /// To client apps, for people of one instance.
        ClientAppIdpInstance,
    }
    /// Where a claim goes.
    Destination {
        /// Nowhere.
        None,
        /// Into ID tokens.
        IdToken,
        /// Into access tokens.
        AccessToken,
        /// Into both.
        IdTokenAndAccessToken,
    }
    /// The source of the claims that a rule matches.
    InputSource {
        /// All.
        All,
        /// Those of the platform.
        Platform,
        /// Those of the identity provider.
        IdentityProvider,
    }
    /// When a claim is disclosed.
    DisclosureMode {
        /// Always.
        Always,
        /// When it is requested.
        OnRequest,
    }
}

record! {
    /// A claim rule: a rule for the claims about users in tokens.
    #[de("Claim-Regel", "Claim-Regeln", "Eine Claim-Regel: eine Regel für die Claims über Benutzer in Token.")]
    pub struct ClaimRule {
        /// The rule.
        id: ClaimRuleId = KEY,
        /// Its name.
        name: Name = OPEN,
        /// Type of the rule.
        #[de("Art der Regel")]
        rule_type: RuleType = OPEN,
        /// The part of a claim that is matched.
        #[de("Trifft auf", "Der Teil eines Claims, der verglichen wird.")]
        filter_target: ClaimTarget = OPEN.or(DefaultValue::Text("ClaimType")),
        /// The part of a claim that is rewritten.
        #[de("Schreibt um", "Der Teil eines Claims, der umgeschrieben wird.")]
        transform_target: ClaimTarget = OPEN.or(DefaultValue::Text("ClaimType")),
        /// Level at which the rule applies.
        #[de("Ebene", "Die Ebene, auf der die Regel gilt.")]
        rule_level: RuleLevel = OPEN,
        /// Destination of the claims: ID tokens, access tokens, both or none.
        #[de("Ziel", "Das Ziel der Claims: ID-Token, Zugriffstoken, beide oder keines.")]
        destination: Destination = OPEN.or(DefaultValue::Text("IdTokenAndAccessToken")),
        /// Source of the claims that the rule evaluates.
        #[de("Quelle der Claims", "Die Quelle der Claims, die die Regel auswertet.")]
        input_source: InputSource = OPEN.or(DefaultValue::Text("All")),
        /// When the claims of the rule are disclosed.
        #[de("Offengelegt", "Wann die Claims der Regel offengelegt werden.")]
        disclosure_mode: DisclosureMode = OPEN.or(DefaultValue::Text("Always")),
        /// Priority of the rule. Rules of the same priority run on the same claims. A lower priority runs first.
        #[de(
            "Priorität",
            "Die Priorität der Regel. Regeln derselben Priorität werden auf dieselben Claims angewendet. Eine niedrigere Priorität kommt zuerst."
        )]
        priority: i64 = OPEN.or(DefaultValue::Int(0)),
        /// Pattern of the claim types that the rule matches. An empty pattern matches all types.
        #[de("Muster der Typen", "Das Muster der Typen, auf die die Regel passt. Ein leeres Muster passt auf alle Typen.")]
        type_evaluation_rule: Option<PatternText> = OPEN,
        /// Pattern of the claim values that the rule matches. An empty pattern matches all values.
        #[de("Muster der Werte", "Das Muster der Werte, auf die die Regel passt. Ein leeres Muster passt auf alle Werte.")]
        value_evaluation_rule: Option<PatternText> = OPEN,
        /// Pattern of the part of the type that is rewritten.
        #[de("Umzuschreibender Teil des Typs", "Das Muster des Teils eines Typs, der umgeschrieben wird.")]
        type_transformation_rule: Option<PatternText> = OPEN,
        /// Pattern of the part of the value that is rewritten.
        #[de("Umzuschreibender Teil des Werts", "Das Muster des Teils eines Werts, der umgeschrieben wird.")]
        value_transformation_rule: Option<PatternText> = OPEN,
        /// Replacement for the rewritten part of the type. For a rule of type Add: the type of the claim.
        #[de("Neuer Typ", "Der Ersatz für den umgeschriebenen Teil des Typs. Bei einer Regel, die hinzufügt: der Typ des Claims.")]
        type_transformation_replacement: Option<PatternText> = OPEN,
        /// Replacement for the rewritten part of the value. For a rule of type Add: the value of the claim.
        #[de("Neuer Wert", "Der Ersatz für den umgeschriebenen Teil des Werts. Bei einer Regel, die hinzufügt: der Wert des Claims.")]
        value_transformation_replacement: Option<PatternText> = OPEN,
        /// Whether the rule is active.
        #[de(_, "Ob die Regel aktiv ist.")]
        is_active: bool = OPEN.or(DefaultValue::Bool(true)),
        /// The subscription that owns the rule. Default: `Default`, if it is the only subscription.
        #[de(_, "Das Abonnement, dem die Regel gehört. Ohne Angabe `Default`, wenn es das einzige ist.")]
        subscription_id: Option<SubscriptionId> = FIXED,
        /// The identity provider instance whose users the rule applies to.
        #[de(_, "Der Identitätsanbieter, für dessen Benutzer die Regel gilt.")]
        apply_to_idp_instance_id: Option<IdpInstanceId> = OPEN,
        /// The subscription that the rule applies to. Default: the subscription that owns it.
        #[de(_, "Das Abonnement, für das die Regel gilt. Ohne Angabe das, dem sie gehört.")]
        apply_to_subscription_id: Option<SubscriptionId> = OPEN,
        /// The tenant that it applies to.
        apply_to_tenant_id: Option<TenantId> = OPEN,
        /// Concurrency token. It changes with every write to the rule.
        concurrency_token: Token = SHOWN,
    }
}

/// A parsed choice; if it is unknown, its column and the fault.
fn known<T>(column: &'static str, word: &str, found: Option<T>) -> Result<T, (&'static str, String)> {
    found.ok_or_else(|| (column, format!("{word:?} is no word that claim rules know")))
}

impl ClaimRule {
    /// The rule in the form of the claims engine; else the column of a choice that is unknown to the engine.
    fn to_rule(&self) -> Result<Rule, (&'static str, String)> {
        macro_rules! word {
            ($kind:ident, $field:ident) => {
                known(
                    stringify!($field),
                    self.$field.name(),
                    chancery_claims::$kind::parse(self.$field.name()),
                )?
            };
        }
        let text = |text: &Option<PatternText>| text.as_ref().map_or("", PatternText::as_str).to_owned();
        Ok(Rule {
            id: self.id.0,
            name: self.name.as_str().to_owned(),
            rule_type: word!(RuleType, rule_type),
            filter_target: word!(Target, filter_target),
            transform_target: word!(Target, transform_target),
            destination: word!(Destination, destination),
            input_source: word!(InputSource, input_source),
            disclosure: word!(Disclosure, disclosure_mode),
            priority: self.priority,
            type_evaluation_rule: text(&self.type_evaluation_rule),
            value_evaluation_rule: text(&self.value_evaluation_rule),
            type_transformation_rule: text(&self.type_transformation_rule),
            value_transformation_rule: text(&self.value_transformation_rule),
            type_transformation_replacement: text(&self.type_transformation_replacement),
            value_transformation_replacement: text(&self.value_transformation_replacement),
        })
    }

    /// [`Self::to_rule`], with an unknown choice as an internal error: a stored choice must be known.
    fn known(&self) -> Result<Rule, Problem> {
        let unknown = |(column, detail)| StoreError::Internal(format!("a claim rule's {column}: {detail}"));
        Ok(self.to_rule().map_err(unknown)?)
    }

    /// Reports members that the rule's level requires or does not allow.
    fn check_level(&self, wrong: &mut Findings) {
        let level = self.rule_level.name();
        let instance = self.rule_level == RuleLevel::ClientAppIdpInstance;
        let tenant = self.rule_level == RuleLevel::Tenant;
        if instance != self.apply_to_idp_instance_id.is_some() {
            let verb = if instance { "is missing: " } else { "must be empty: " };
            wrong.add(Self::APPLY_TO_IDP_INSTANCE_ID, format!("{verb}the rule's level is {level}"));
        }
        if tenant != self.apply_to_tenant_id.is_some() {
            let verb = if tenant { "is missing: " } else { "must be empty: " };
            wrong.add(Self::APPLY_TO_TENANT_ID, format!("{verb}the rule's level is {level}"));
        }
    }
}

impl Rules for ClaimRule {
    fn adjust(&mut self, was: Option<&Self>, _: &ProvidedFields<'_, Self>) {
        if self.apply_to_subscription_id.is_none() {
            self.apply_to_subscription_id = self.subscription_id.or(was.and_then(|was| was.subscription_id));
        }
    }

    fn check(&self, wrong: &mut Findings) {
        self.check_level(wrong);
    }
}

impl ClaimRule {
    /// The client apps that a rule of level ClientApp or ClientAppIdpInstance applies to.
    pub const CLIENT_APPS: Relation = Relation::new(
        "clientApps",
        "The client apps that a rule of level ClientApp or ClientAppIdpInstance applies to.",
        CLIENT_APP_CLAIM_RULE.reverse(),
        &CLIENT_APP,
    )
    .guarded(|tx, links| {
        take_client_apps(tx, &[links.row])?;
        within_subscription(tx, links)
    })
    .at_creation();
}

/// The shape of claim rules.
pub static CLAIM_RULE: Shape = Shape::of::<ClaimRule>(
    "ClaimRule",
    "claim_rule",
    Reach::Tenant(ClaimRule::SUBSCRIPTION_ID.field(), ClaimRule::APPLY_TO_TENANT_ID.field()),
)
.belonging(&[
    Parent::new(ClaimRule::APPLY_TO_IDP_INSTANCE_ID, &IDP_INSTANCE).open(),
    Parent::new(ClaimRule::APPLY_TO_TENANT_ID, &TENANT).open(),
])
.unique(&[Unique::new("claim_rule__id", &[ClaimRule::ID.field()])])
.relations(const { &[ClaimRule::CLIENT_APPS] })
.ruled::<ClaimRule>()
.validate_rows(check)
.bumps_epoch();

/// Validates that rules have valid patterns, and apply within their subscriptions and at their levels.
fn check(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let targets = [
        (ClaimRule::APPLY_TO_TENANT_ID.field(), "tenant"),
        (ClaimRule::APPLY_TO_IDP_INSTANCE_ID.field(), "idp_instance"),
        (ClaimRule::APPLY_TO_SUBSCRIPTION_ID.field(), "subscription"),
    ];
    let rules = rows.iter().map(|row| ClaimRule::from_values(row.values.clone()));
    // a new row gets another id in each run, and the second run compares the rules with the validated ones
    let rules = rules.map(|rule| Ok(Rule { id: Uuid::nil(), ..rule?.known()? }));
    let rules = rules.collect::<Result<Vec<_>, Problem>>()?;
    let mut violations = validate_items(writer, Purpose::Pattern, rules, weigh)?;
    let own = ClaimRule::SUBSCRIPTION_ID;
    violations.extend(resolve_subscription(writer.context, tx, rows, own, &targets, |_| Ok(false))?);
    let mut narrowed = Vec::new();
    for (index, row) in rows.iter_mut().enumerate() {
        if row.get(ClaimRule::APPLY_TO_SUBSCRIPTION_ID)?.is_none() {
            row.set(ClaimRule::APPLY_TO_SUBSCRIPTION_ID, row.get(own)?)?;
        }
        let level = row.get(ClaimRule::RULE_LEVEL)?;
        if let (Some(was), true) = (row.was, has_no_client_apps(level.name())) {
            narrowed.push((index, was.rid));
        }
    }
    let linked = with_client_apps(tx, &narrowed.iter().map(|(_, rid)| *rid).collect::<Vec<_>>())?;
    for (index, _) in narrowed.into_iter().filter(|(_, rid)| linked.contains(rid)) {
        let detail = "does not fit: the rule has client apps, which this level does not take";
        violations.push(violation_at(index, ClaimRule::RULE_LEVEL, detail));
    }
    Ok(violations)
}

/// The weight of a rule's patterns, or the faults of the rule.
fn weigh(rule: &Rule) -> Result<u64, Vec<FieldFault>> {
    let field = |member| match member {
        Member::TypeEvaluationRule => ClaimRule::TYPE_EVALUATION_RULE.field(),
        Member::ValueEvaluationRule => ClaimRule::VALUE_EVALUATION_RULE.field(),
        Member::TypeTransformationRule => ClaimRule::TYPE_TRANSFORMATION_RULE.field(),
        Member::ValueTransformationRule => ClaimRule::VALUE_TRANSFORMATION_RULE.field(),
        Member::TypeTransformationReplacement => ClaimRule::TYPE_TRANSFORMATION_REPLACEMENT.field(),
        Member::ValueTransformationReplacement => ClaimRule::VALUE_TRANSFORMATION_REPLACEMENT.field(),
    };
    rule.weigh().map_err(|wrong| wrong.into_iter().map(|(member, detail)| (field(member), detail)).collect())
}

/// The operations on claim rules.
pub static OPERATIONS: [Op; 9] =
    standard!("ClaimRule", "/ClaimRule", TenantMember, TenantMember, &CLAIM_RULE);
/// Operations on a claim rule's client apps.
pub static CLIENT_APPS: [Op; 3] = relation!(
    "ClaimRuleClientApps",
    "/ClaimRule/{id}/clientapps",
    TenantMember,
    &CLAIM_RULE,
    ClaimRule::CLIENT_APPS
);
