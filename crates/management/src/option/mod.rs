//! Options: the settings of instances and tenants. A change takes effect at once, in every process.

mod dependencies;
mod look_up;
mod rules;
mod seed;

use chancery_record::{
    DefaultValue, FieldType as _, HIDDEN, KEY, Name, OPEN, OptionValue, SHOWN, Sealing, Token, Value,
    choice_types, id_types, record,
};
use chancery_resource::settings::Owner;
use chancery_resource::settings::{ProviderOption, Setting};
use chancery_resource::{
    Call, Op, Parent, Problem, ProblemKind, Reach, Shape, StoredRow, Tx, Unique, added, load_by,
    select_where, standard, update,
};
use uuid::Uuid;

use crate::{
    idp_instance::{IDP_INSTANCE, IdpInstance},
    mfa_instance::MFA_INSTANCE,
    tenant::TENANT,
};

pub use look_up::OPERATIONS as LOOK_UPS;
pub use rules::refusals;
pub use seed::{add_new_entries, create_all, max_created};

id_types! {
    /// The id of an option.
    OptionId
}

choice_types! {
    /// The data type of an option.
    DataType {
        /// Text.
        String,
        /// A truth value.
        Boolean,
        /// A whole number.
        Integer,
        /// A length of time.
        TimeSpan,
        /// Texts with commas between them.
        CommaSeparatedString,
    }
    /// The editor of an option.
    EditorType {
        /// A line of text.
        Text,
        /// A box to be ticked.
        Checkbox,
        /// A number.
        Number,
        /// A length of time.
        Duration,
        /// A list of texts.
        Tags,
    }
}

record! {
    /// An option: a named setting of an identity provider instance, an MFA instance or a tenant.
    #[de(
        "Einstellung",
        "Einstellungen",
        "Eine benannte Einstellung eines Identitätsanbieters, eines zweiten Faktors oder eines Mandanten."
    )]
    pub struct OptionRow {
        /// The option.
        id: OptionId = KEY,
        /// The name of the option, unique for its target.
        #[de(_, "Der Name der Einstellung, eindeutig für den Identitätsanbieter, den zweiten Faktor oder den Mandanten.")]
        name: Name = OPEN,
        /// The value, as text in the form of `dataType`. If it is empty, the default applies.
        #[de(_, "Der Wert, als Text in der Form des Datentyps. Ist er leer, gilt die Vorgabe.")]
        value: OptionValue = OPEN.or(DefaultValue::Text("")).sealed(Sealing::Secret),
        /// The data type of the value: a hint for editors.
        #[de("Datentyp")]
        data_type: DataType = SHOWN.or(DefaultValue::Text("String")),
        /// The input control for the value: a hint for editors.
        #[de("Eingabe")]
        editor_type: EditorType = SHOWN.or(DefaultValue::Text("Text")),
        /// Whether it is mandatory and empty, or its value cannot be read.
        has_configuration_error: bool = SHOWN.or(DefaultValue::Bool(false)),
        /// The identity provider instance that it applies to.
        #[de(_, "Der Identitätsanbieter, für den sie gilt.")]
        apply_to_idp_instance_id: Option<Uuid> = OPEN,
        /// The MFA instance that it applies to.
        #[de("Für zweiten Faktor", "Der zweite Faktor, für den sie gilt.")]
        apply_to_mfa_instance_id: Option<Uuid> = OPEN,
        /// The tenant that it applies to.
        apply_to_tenant_id: Option<Uuid> = OPEN,
        /// The subscription of what it applies to.
        subscription_id: Option<Uuid> = HIDDEN,
        /// What kind of owner it has, which says what its name means.
        #[de("Art des Besitzers")]
        owner_type: Option<Name> = HIDDEN,
        /// Concurrency token. It changes with every write to the option.
        concurrency_token: Token = SHOWN,
    }
}

/// The scope of options: that of the tenant or the instance that one applies to.
static REACH: [Reach; 3] = [
    Reach::Tenant(OptionRow::SUBSCRIPTION_ID.field(), OptionRow::APPLY_TO_TENANT_ID.field()),
    Reach::Of(OptionRow::APPLY_TO_IDP_INSTANCE_ID.field(), &IDP_INSTANCE),
    Reach::Of(OptionRow::APPLY_TO_MFA_INSTANCE_ID.field(), &MFA_INSTANCE),
];

/// The shape of options.
pub static OPTION: Shape = Shape::of::<OptionRow>("Option", "option_value", Reach::Any(&REACH))
    .belonging(&[
        Parent::new(OptionRow::APPLY_TO_IDP_INSTANCE_ID, &IDP_INSTANCE),
        Parent::new(OptionRow::APPLY_TO_MFA_INSTANCE_ID, &MFA_INSTANCE),
        Parent::new(OptionRow::APPLY_TO_TENANT_ID, &TENANT),
    ])
    .unique(&[
        Unique::new("option_value__id", &[OptionRow::ID.field()]),
        Unique::new(
            "option_value__apply_to_idp_instance_id__name",
            &[OptionRow::APPLY_TO_IDP_INSTANCE_ID.field(), OptionRow::NAME.field()],
        ),
        Unique::new(
            "option_value__apply_to_mfa_instance_id__name",
            &[OptionRow::APPLY_TO_MFA_INSTANCE_ID.field(), OptionRow::NAME.field()],
        ),
        Unique::new(
            "option_value__apply_to_tenant_id__name",
            &[OptionRow::APPLY_TO_TENANT_ID.field(), OptionRow::NAME.field()],
        ),
    ])
    .open_where(rules::is_open)
    .ruled::<OptionRow>()
    .validate_rows(rules::find_targets)
    .secret_when(rules::is_secret)
    .after_write(dependencies::revalidate_dependent)
    .bumps_epoch();

/// The operations on options: reading needs a lower role than writing.
pub static OPERATIONS: [Op; 9] = added(standard!("Option", "/Option", TenantMember, TenantAdmin, &OPTION));

/// An instance's option of this name, if there is one.
pub fn find<T>(
    call: &Call,
    tx: &mut Tx<'_>,
    instance: Uuid,
    setting: Setting<ProviderOption, T>,
) -> Result<Option<StoredRow>, Problem> {
    let sql = select_where(&call.context, &OPTION, OptionRow::APPLY_TO_IDP_INSTANCE_ID, instance.into());
    let sql = sql.push(&format!(" AND t.{} = ", OptionRow::NAME)).bind(setting.name());
    match load_by(&call.context, tx, &OPTION, None, &sql) {
        Ok(row) => Ok(Some(row)),
        Err(problem) if problem.kind == ProblemKind::NotFound => Ok(None),
        Err(problem) => Err(problem),
    }
}

/// Sets an option of an instance, and creates it if it was deleted.
pub fn set<T>(
    call: &Call,
    tx: &mut Tx<'_>,
    instance: &StoredRow,
    setting: Setting<ProviderOption, T>,
    value: Value,
) -> Result<(), Problem> {
    let id = instance.get(IdpInstance::ID)?.0;
    let Some(subscription) = instance.get(IdpInstance::SUBSCRIPTION_ID)? else { return Ok(()) };
    let mut was = find(call, tx, id, setting)?;
    if was.is_none() {
        seed::create_one(&call.context, tx, Owner::OpenIdConnect, setting.name(), id, subscription.0)?;
        was = find(call, tx, id, setting)?;
    }
    let was = was.ok_or_else(|| Problem::not_found("Option"))?;
    let mut values = was.values.clone();
    OptionRow::VALUE.set(&mut values, OptionValue::from_value(value)?)?;
    OptionRow::CONCURRENCY_TOKEN.field().set(&mut values, call.context.new_token());
    update(&call.context, tx, &OPTION, &was, &values)
}
