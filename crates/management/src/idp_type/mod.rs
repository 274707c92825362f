//! Types of identity providers and of second factors.

mod seed;
mod settle;

use std::collections::HashSet;

use chancery_record::{
    DefaultValue, HIDDEN, KEY, Name, OPEN, Record as _, SHOWN, Token, Value, choice_types, id_types, record,
};
use chancery_resource::{
    Action as A, Child, Custom, LIST, Method as M, Op, Pairs, Permit::TenantMember, Problem, ProposedRow,
    Reach, Relation, Shape, Sql, Tx, Unique, Violation, Writer, added, read_one, select_by, standard,
};
use uuid::Uuid;

use crate::{
    idp_instance::{IDP_INSTANCE, IdpInstance},
    mfa_instance::{MFA_INSTANCE, MfaInstance},
    violation::{conflict_at, violation_at},
};

pub use seed::{id_of, seed};
pub use settle::settle_types;

id_types! {
    /// The id of a type.
    IdpTypeId
}

choice_types! {
    /// The purpose of the instances of a type.
    ProviderType {
        /// They identify people.
        IdentityProvider,
        /// They add a second factor.
        MultiFactor,
    }
    /// The implementation of the instances of a type.
    FactoryType {
        /// A user store of this server.
        UserStore,
        /// An OpenID provider.
        OpenIdConnect,
        /// Active Directory Federation Services, by OAuth.
        AdfsOAuth,
        /// Accounts of Microsoft.
        Microsoft,
        /// Accounts of Google.
        Google,
        /// Accounts of Facebook.
        Facebook,
        /// Accounts of Twitter.
        Twitter,
        /// A code by mail.
        Email = "email",
        /// A code by text message.
        Sms = "sms",
        /// A code of an authenticator app (RFC 6238).
        Totp = "totp",
    }
}

impl FactoryType {
    /// The purpose of the instances of the type.
    pub const fn provider(self) -> ProviderType {
        match self {
            Self::Email | Self::Sms | Self::Totp => ProviderType::MultiFactor,
            _ => ProviderType::IdentityProvider,
        }
    }
}

record! {
    /// A type of identity providers or of second factors.
    #[de("Anbietertyp", "Anbietertypen", "Eine Art von Identitätsanbietern oder zweiten Faktoren.")]
    pub struct IdpType {
        /// The type.
        id: IdpTypeId = KEY,
        /// Its name, unique without regard to case.
        #[de(_, "Der Name, eindeutig; Groß- und Kleinschreibung zählt nicht.")]
        name: Name = OPEN.folded(),
        /// The purpose of the instances of the type.
        #[de("Anbietertyp", "Der Zweck der Instanzen des Typs.")]
        provider_type: ProviderType = OPEN,
        /// The implementation of the instances of the type.
        #[de("Art", "Die Implementierung der Instanzen des Typs.")]
        factory_type: FactoryType = OPEN,
        /// Whether instances of it can be created.
        #[de(_, "Ob Instanzen davon angelegt werden können.")]
        is_active: bool = OPEN.or(DefaultValue::Bool(true)),
        /// Whether it came with the server.
        #[de("Mitgeliefert")]
        is_seeded: bool = HIDDEN.or(DefaultValue::Bool(false)),
        /// Concurrency token. It changes with every write to the type.
        concurrency_token: Token = SHOWN,
    }
}

/// The shape of types.
pub static IDP_TYPE: Shape = Shape::of::<IdpType>("IdpType", "idp_type", Reach::All)
    .unique(&[Unique::new("idp_type__id", &[IdpType::ID.field()]), Unique::new("idp_type__name_key", &[IdpType::NAME.field()])])
    .relations(&[Relation::new(
        "mfaInstances",
        "The second factors of this type.",
        Pairs {
            table: "(SELECT p.rid AS own_rid, c.rid AS other_rid FROM idp_type p JOIN mfa_instance c ON c.idp_type_id = p.id)",
            own: "own_rid",
            other: "other_rid",
        },
        &MFA_INSTANCE,
    )])
    .held_by(&[
        Child::new("instance", &IDP_INSTANCE, IdpInstance::IDP_TYPE_ID, IdpInstance::NAME),
        Child::new("MFA instance", &MFA_INSTANCE, MfaInstance::IDP_TYPE_ID, MfaInstance::NAME),
        // a type that came with the server cannot be deleted
        Child::in_table(
            "its place in the server, as a type that came with it,",
            "(SELECT rid, id AS of_id, name FROM idp_type WHERE is_seeded)",
            "of_id",
            "name",
        ),
    ])
    .validate_rows(check_consistency)
    .bumps_epoch();

/// Validates that a type's `factoryType` fits its `providerType`, that a seeded type keeps its name and
/// `factoryType`, and that a type with instances keeps its `factoryType`.
fn check_consistency(
    _: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let (mut violations, mut changed) = (Vec::new(), Vec::new());
    for (index, row) in rows.iter().enumerate() {
        let proposed = IdpType::from_values(row.values.clone())?;
        if proposed.factory_type.provider() != proposed.provider_type {
            let fits = proposed.factory_type.provider().name();
            violations.push(violation_at(
                index,
                IdpType::PROVIDER_TYPE,
                format!("must be {fits} for this factoryType"),
            ));
        }
        let Some(was) = row.was else { continue };
        let was = IdpType::from_values(was.values.clone())?;
        let is_same = was.name == proposed.name && was.factory_type == proposed.factory_type;
        if was.is_seeded && !is_same {
            violations.push(conflict_at(index, IdpType::NAME, "stays: the type came with the server"));
        }
        if was.factory_type != proposed.factory_type {
            changed.push((index, was.id.0));
        }
    }
    let used = with_instances(tx, &changed)?;
    for (index, _) in changed.into_iter().filter(|(_, id)| used.contains(id)) {
        violations.push(conflict_at(index, IdpType::FACTORY_TYPE, "stays: there are instances of the type"));
    }
    Ok(violations)
}

/// The types that have instances.
fn with_instances(tx: &mut Tx<'_>, types: &[(usize, Uuid)]) -> Result<HashSet<Uuid>, Problem> {
    let mut used = HashSet::new();
    for chunk in types.chunks(LIST) {
        for table in ["idp_instance", "mfa_instance"] {
            let mut sql = Sql::new(format!("SELECT DISTINCT idp_type_id FROM {table} WHERE idp_type_id IN "));
            sql.add_list(chunk.iter().map(|(_, id)| Value::Id(*id)));
            tx.query(&sql.text, &sql.parameters, |row| {
                used.insert(row.id(0)?);
                Ok(())
            })?;
        }
    }
    Ok(used)
}

/// The operations on types.
pub static OPERATIONS: [Op; 9] =
    added(standard!("IdpType", "/IdpType", TenantMember, SystemAdmin, &IDP_TYPE));
/// Operations on types beyond the standard ones.
pub static LOOK_UPS: &[Op] = &[Op::new(
    "GetIdpTypeByName",
    M::Get,
    "/IdpType/name/{name}",
    TenantMember,
    &IDP_TYPE,
    A::Custom(Custom::reading(|call, tx| {
        let sql = select_by(&call.context, call.request.op.shape, IdpType::NAME, call.request.parameter(0));
        read_one(call, tx, call.request.op.shape, None, &sql)
    })),
    "Reads a type by its name, without regard to case.",
)
.added()];
