//! Roles of platform users and groups.

use std::collections::HashSet;

use chancery_application::{APPLICATION_GROUP, APPLICATION_USER, CredentialQuery, GrantReview};
use chancery_record::{
    DefaultValue, FIXED, HIDDEN, KEY, Name, Record as _, SHOWN, Token, choice_types, id_types, record,
};
use chancery_resource::{
    Findings, Op, Parent, Problem, ProposedRow, ProvidedFields, Reach, RoleType, Rules, ScopeKind, Shape, Tx,
    Unique, Violation, Writer, added, standard, visible,
};
use uuid::Uuid;

use crate::{
    customer::{CUSTOMER, CustomerId},
    grant::{Grant, Target, check_grants, check_stores, check_targets, target_of, targets_alone},
    idp_instance::{IDP_INSTANCE, IdpInstanceId},
    owning_subscription::is_covered,
    subscription::{SUBSCRIPTION, SubscriptionId},
    tenant::{TENANT, TenantId},
    violation::{conflict_at, violation_at},
};

id_types! {
    /// The id of a role assignment.
    RoleAssignmentId
}

choice_types! {
    /// The kind of a principal.
    AssignedPrincipal {
        /// A platform user.
        PlatformUser,
        /// A platform group, and so its members.
        PlatformGroup,
    }
}

record! {
    /// The assignment of a role to a platform user or a platform group.
    #[de("Rollenzuweisung", "Rollenzuweisungen", "Die Zuweisung einer Rolle an einen Plattformbenutzer oder eine Plattformgruppe.")]
    pub struct RoleAssignment {
        /// The assignment.
        id: RoleAssignmentId = KEY,
        /// The kind of principal that has the role.
        #[de("Art des Berechtigten", "Die Art des Inhabers der Rolle.")]
        principal_type: AssignedPrincipal = FIXED,
        /// The platform user or group.
        #[de("Empfänger")]
        principal_id: Uuid = FIXED,
        /// The assigned role.
        role_type: RoleType = FIXED,
        /// The customer to which the role applies, for a CustomerAdmin.
        #[de("Für Kunden", "Der Kunde, für den die Rolle gilt, bei einem Administrator eines Kunden.")]
        apply_to_customer_id: Option<CustomerId> = FIXED,
        /// The subscription to which the role applies, for a SubscriptionAdmin.
        #[de(_, "Das Abonnement, für das die Rolle gilt, bei einem Administrator eines Abonnements.")]
        apply_to_subscription_id: Option<SubscriptionId> = FIXED,
        /// The tenant to which the role applies, for a TenantAdmin or an ApplicationDataReader.
        apply_to_tenant_id: Option<TenantId> = FIXED,
        /// The identity provider instance to which the role applies, for a UserStoreAdmin or an ApplicationDataReader.
        apply_to_idp_instance_id: Option<IdpInstanceId> = FIXED,
        /// What it applies to, as text.
        target_key: Name = HIDDEN.or(DefaultValue::Text("")),
        /// Concurrency token. It changes with every write to the assignment.
        concurrency_token: Token = SHOWN,
    }
}

impl RoleAssignment {
    /// The targets of the assignment.
    fn targets(&self) -> [Target; 4] {
        [
            (
                ScopeKind::Customer,
                Self::APPLY_TO_CUSTOMER_ID.field(),
                self.apply_to_customer_id.map(|id| id.0),
            ),
            (
                ScopeKind::Subscription,
                Self::APPLY_TO_SUBSCRIPTION_ID.field(),
                self.apply_to_subscription_id.map(|id| id.0),
            ),
            (ScopeKind::Tenant, Self::APPLY_TO_TENANT_ID.field(), self.apply_to_tenant_id.map(|id| id.0)),
            (
                ScopeKind::IdpInstance,
                Self::APPLY_TO_IDP_INSTANCE_ID.field(),
                self.apply_to_idp_instance_id.map(|id| id.0),
            ),
        ]
    }
}

impl Rules for RoleAssignment {
    fn adjust(&mut self, _: Option<&Self>, _: &ProvidedFields<'_, Self>) {
        let target = self.targets().into_iter().find_map(|(.., target)| target);
        if let Some(key) = target.and_then(|id| Name::new(id.to_string()).ok()) {
            self.target_key = key;
        }
    }

    fn check(&self, wrong: &mut Findings) {
        check_targets(self.role_type, &self.targets(), wrong);
    }
}

/// The scope of assignments is that of the target. For an instance that is only assigned to a tenant,
/// the tenant's administrators do not decide who administers it.
static REACH: [Reach; 4] = [
    Reach::Of(RoleAssignment::APPLY_TO_CUSTOMER_ID.field(), &CUSTOMER),
    Reach::Of(RoleAssignment::APPLY_TO_SUBSCRIPTION_ID.field(), &SUBSCRIPTION),
    Reach::Of(RoleAssignment::APPLY_TO_TENANT_ID.field(), &TENANT),
    Reach::Unless(&OF_INSTANCE, |sql, alias, scope| {
        sql.add(&format!(
            "EXISTS (SELECT 1 FROM idp_instance x WHERE x.id = {alias}.apply_to_idp_instance_id AND "
        ));
        is_covered(sql, "x.subscription_id", scope);
        sql.add(")");
    }),
];
static OF_INSTANCE: Reach = Reach::Of(RoleAssignment::APPLY_TO_IDP_INSTANCE_ID.field(), &IDP_INSTANCE);

/// The shape of role assignments.
pub static ROLE_ASSIGNMENT: Shape =
    Shape::of::<RoleAssignment>("RoleAssignment", "role_assignment", Reach::Any(&REACH))
        .sensitive()
        .belonging(&[
            Parent::new(RoleAssignment::APPLY_TO_CUSTOMER_ID, &CUSTOMER),
            Parent::new(RoleAssignment::APPLY_TO_SUBSCRIPTION_ID, &SUBSCRIPTION),
            Parent::new(RoleAssignment::APPLY_TO_TENANT_ID, &TENANT).open(),
            Parent::new(RoleAssignment::APPLY_TO_IDP_INSTANCE_ID, &IDP_INSTANCE).open(),
        ])
        .unique(&[
            Unique::new("role_assignment__id", &[RoleAssignment::ID.field()]),
            Unique::new(
                "role_assignment__principal_id__role_type__target_key",
                &[
                    RoleAssignment::PRINCIPAL_ID.field(),
                    RoleAssignment::ROLE_TYPE.field(),
                    RoleAssignment::TARGET_KEY.field(),
                ],
            )
            .reported_at(RoleAssignment::ROLE_TYPE),
        ])
        .ruled::<RoleAssignment>()
        .validate_rows(check)
        .bumps_epoch();

fn check(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let assignments = rows
        .iter()
        .map(|row| RoleAssignment::from_values(row.values.clone()))
        .collect::<Result<Vec<_>, _>>()?;
    let grants = assignments.iter().map(|assigned| {
        let scope = assigned.role_type.scope(|kind| target_of(kind, targets_alone(&assigned.targets())));
        (assigned.role_type, scope)
    });
    let grants: Vec<_> = grants.collect();
    let mut violations = check_grants(writer.context, &grants, RoleAssignment::ROLE_TYPE.field());
    violations.extend(check_stores(tx, &grants, RoleAssignment::APPLY_TO_IDP_INSTANCE_ID.field())?);
    for (kind, shape) in [
        (AssignedPrincipal::PlatformUser, &APPLICATION_USER),
        (AssignedPrincipal::PlatformGroup, &APPLICATION_GROUP),
    ] {
        let of_kind =
            || assignments.iter().enumerate().filter(|(_, assigned)| assigned.principal_type == kind);
        let ids: HashSet<Uuid> = of_kind().map(|(_, assigned)| assigned.principal_id).collect();
        let known = visible(writer.context, tx, shape, &ids.into_iter().collect::<Vec<_>>())?;
        for (index, _) in of_kind().filter(|(_, assigned)| !known.contains_key(&assigned.principal_id)) {
            violations.push(violation_at(
                index,
                RoleAssignment::PRINCIPAL_ID,
                format!("names no {}", kind.name()),
            ));
        }
    }
    if violations.is_empty() {
        violations.extend(check_providers(tx, &assignments, &grants)?);
    }
    Ok(violations)
}

/// Reports principals with an external identity provider that an actor without the role configured, unless an actor with the role has
/// confirmed the settings since.
fn check_providers(
    tx: &mut Tx<'_>,
    assignments: &[RoleAssignment],
    grants: &[Grant],
) -> Result<Vec<Violation>, Problem> {
    let text = "SELECT EXISTS (SELECT 1 FROM idp_instance WHERE store_name_key IS NULL)";
    let (mut review, mut violations) = (GrantReview::default(), Vec::new());
    if tx.one(text, &[], |row| row.bool(0))? != Some(true) {
        return Ok(violations);
    }
    let users = assignments.iter().filter(|one| one.principal_type == AssignedPrincipal::PlatformUser);
    review.load(tx, &users.map(|one| one.principal_id).collect::<Vec<_>>())?;
    for (index, (assigned, (role, scope))) in assignments.iter().zip(grants).enumerate() {
        let Some(scope) = scope else { continue };
        let principal = match assigned.principal_type {
            AssignedPrincipal::PlatformUser => CredentialQuery::Person(assigned.principal_id),
            AssignedPrincipal::PlatformGroup => CredentialQuery::Group(assigned.principal_id),
        };
        if let Some(required) = review.required_for(tx, principal, *role, *scope)? {
            violations.push(conflict_at(index, RoleAssignment::PRINCIPAL_ID, required.detail()));
        }
    }
    Ok(violations)
}

/// The operations on role assignments. An assignment does not change: another is created instead.
pub static OPERATIONS: [Op; 9] =
    added(standard!("RoleAssignment", "/RoleAssignment", TenantMember, TenantMember, &ROLE_ASSIGNMENT));
