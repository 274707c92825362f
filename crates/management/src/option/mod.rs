//! Options: what instances and tenants are set to. A change takes effect at once, everywhere.

mod rules;
mod seed;

use chancery_record::{
    HIDDEN, KEY, Name, OPEN, OptionValue, Preset, SHOWN, Sealing, Token, id_types, record,
};
use chancery_resource::{
    Action as A, Method as M, Op,
    Permit::{OptionRead, OptionWrite},
    Reach, Shape, Unique,
};
use uuid::Uuid;

pub use seed::{add_new_entries, make_all};

id_types! {
    /// The id of an option.
    OptionId
}

record! {
    /// What an identity provider instance, an MFA instance or a tenant is set to, by name.
    pub struct OptionRow {
        /// The option.
        id: OptionId = KEY,
        /// Its name, unique for what it applies to.
        name: Name = OPEN,
        /// Its value: text, in the form that dataType names. Empty takes the default.
        value: OptionValue = OPEN.or(Preset::Text("")).sealed(Sealing::Secret),
        /// What the value stands for: a hint for editors.
        data_type: Name = SHOWN.or(Preset::Text("String")),
        /// What edits it: a hint for editors.
        editor_type: Name = SHOWN.or(Preset::Text("Text")),
        /// Whether it is mandatory and empty, or its value cannot be read.
        has_configuration_error: bool = SHOWN.or(Preset::Bool(false)),
        /// The identity provider instance that it applies to.
        apply_to_idp_instance_id: Option<Uuid> = OPEN,
        /// The MFA instance that it applies to.
        apply_to_mfa_instance_id: Option<Uuid> = OPEN,
        /// The tenant that it applies to.
        apply_to_tenant_id: Option<Uuid> = OPEN,
        /// The subscription of what it applies to.
        subscription_id: Option<Uuid> = HIDDEN,
        /// What kind of owner it has, which says what its name means.
        owner_type: Option<Name> = HIDDEN,
        /// Changes with every write to the option.
        concurrency_token: Token = SHOWN,
    }
}

/// The resource.
pub static OPTION: Shape =
    Shape::of::<OptionRow>("Option", "option_value", Reach::Subscription("subscription_id"))
        .unique(&[
            Unique { index: "option_value__id", column: "id" },
            Unique { index: "option_value__apply_to_idp_instance_id__name", column: "name" },
            Unique { index: "option_value__apply_to_mfa_instance_id__name", column: "name" },
            Unique { index: "option_value__apply_to_tenant_id__name", column: "name" },
        ])
        .ruled::<OptionRow>()
        .against(rules::find_targets)
        .secret_when(rules::is_secret)
        .settles();

const ALL: &str = "/Option";
const ONE: &str = "/Option/{id}";

/// Its operations.
pub static OPERATIONS: &[Op] = &[
    Op::new("GetOptions", M::Get, ALL, OptionRead, &OPTION, A::List, "Lists the options.").added(),
    Op::new("GetOption", M::Get, ONE, OptionRead, &OPTION, A::Read, "Reads an option.").added(),
    Op::new("UpdateOption", M::Put, ONE, OptionWrite, &OPTION, A::Replace, "Replaces an option.").added(),
    Op::new("PatchOption", M::Patch, ONE, OptionWrite, &OPTION, A::Patch, "Changes an option.").added(),
];
