//! The rules of an option: exactly one target, which exists, and a value in the form of the catalogue.

use std::collections::{HashMap, HashSet};

use chancery_record::{FieldOf, FieldType as _, Name, OptionValue, Record as _, Value, nearest};
use chancery_resource::settings::{Entry, Owner, ProviderOption};
use chancery_resource::{
    FieldFault, Findings, LIST, Problem, ProposedRow, ProvidedFields, Rules, Sql, StoredRow, Tx, Violation,
    Writer, open_secret, selectable,
};
use uuid::Uuid;

use super::{DataType, EditorType, OPTION, OptionRow, dependencies};
use crate::violation::violation_at;

impl OptionRow {
    pub(super) const TARGETS: [FieldOf<Self, Option<Uuid>>; 3] =
        [Self::APPLY_TO_IDP_INSTANCE_ID, Self::APPLY_TO_MFA_INSTANCE_ID, Self::APPLY_TO_TENANT_ID];

    const fn targets(&self) -> [Option<Uuid>; 3] {
        [self.apply_to_idp_instance_id, self.apply_to_mfa_instance_id, self.apply_to_tenant_id]
    }

    const fn set_targets(&mut self, [idp, mfa, tenant]: [Option<Uuid>; 3]) {
        self.apply_to_idp_instance_id = idp;
        self.apply_to_mfa_instance_id = mfa;
        self.apply_to_tenant_id = tenant;
    }
}

impl Rules for OptionRow {
    fn adjust(&mut self, was: Option<&Self>, provided: &ProvidedFields<'_, Self>) {
        let Some(was) = was else { return };
        let given: Vec<bool> = Self::TARGETS
            .iter()
            .zip(self.targets())
            .map(|(field, target)| provided.contains(*field) && target.is_some())
            .collect();
        let empties = Self::TARGETS.iter().any(|field| provided.clears(*field));
        if !given.contains(&true) && !empties {
            // a body without a target does not change the stored one
            self.set_targets(was.targets());
        } else if given.iter().filter(|given| **given).count() == 1 {
            // a body with another target clears the rest
            let mut targets = self.targets();
            for (target, given) in targets.iter_mut().zip(given) {
                *target = target.filter(|_| given);
            }
            self.set_targets(targets);
        }
    }

    fn check(&self, wrong: &mut Findings) {
        if self.targets().iter().flatten().count() != 1 {
            let detail = "exactly one of applyToIdpInstanceId, applyToMfaInstanceId and applyToTenantId is to be given";
            wrong.add(Self::APPLY_TO_IDP_INSTANCE_ID, detail);
        }
    }
}

/// The row's entry in the catalogue, by its name.
pub(super) fn entry_of(values: &[Value]) -> Option<&'static Entry> {
    let owner = OptionRow::OWNER_TYPE.text(values).and_then(Owner::of_type);
    owner.zip(OptionRow::NAME.text(values)).and_then(|(owner, name)| owner.entry(name))
}

/// Whether a row holds a secret.
pub fn is_secret(values: &[Value]) -> bool {
    entry_of(values).is_some_and(|entry| entry.secret)
}

/// Whether a row does not affect who signs in. A row unknown to the catalogue may be a newer release's.
pub fn is_open(values: &[Value]) -> bool {
    entry_of(values).is_some_and(|entry| entry.open)
}

selectable! {
    /// A target with its subscription and its kind.
    struct KnownTarget(kind) {
        id: Uuid = "id",
        subscription: Uuid = "subscription_id",
        kind: String = "{kind}",
    }
}

/// The tables of the targets, each with the expression of the kind. Tenants are all of one kind.
const TABLES: [(&str, &str); 3] =
    [("idp_instance", "idp_type"), ("mfa_instance", "idp_type"), ("tenant", "'Tenant'")];

/// The targets by their ids.
type Targets = HashMap<Uuid, KnownTarget>;

fn load_targets(tx: &mut Tx<'_>, table: &str, kind: &str, ids: &[Uuid]) -> Result<Targets, Problem> {
    let mut targets = Targets::new();
    for chunk in ids.chunks(LIST) {
        let mut sql = Sql::new(format!("SELECT {} FROM {table} WHERE id IN ", KnownTarget::columns(kind)));
        sql.add_list(chunk.iter().copied().map(Value::Id));
        tx.query(&sql.text, &sql.parameters, |row| {
            let target = KnownTarget::read(row)?;
            targets.insert(target.id, target);
            Ok(())
        })?;
    }
    Ok(targets)
}

/// Sets the fields that follow from the targets' kinds. The resource itself checks that targets are within
/// the caller's scope.
pub fn find_targets(
    writer: Writer<'_>,
    tx: &mut Tx<'_>,
    rows: &mut [ProposedRow<'_>],
) -> Result<Vec<Violation>, Problem> {
    let mut targets = Targets::new();
    for (field, (table, kind)) in OptionRow::TARGETS.into_iter().zip(TABLES) {
        let ids: HashSet<Uuid> = rows.iter().filter_map(|row| field.field().id(row.values)).collect();
        targets.extend(load_targets(tx, table, kind, &ids.into_iter().collect::<Vec<_>>())?);
    }
    let mut violations = Vec::new();
    for (index, row) in rows.iter_mut().enumerate() {
        let mut option = OptionRow::from_values(row.values.clone())?;
        let target = option.targets().into_iter().flatten().next().and_then(|id| targets.get(&id));
        // the resource itself reports an unknown target
        let Some(KnownTarget { subscription, kind, .. }) = target else { continue };
        let owner = Owner::of_type(kind);
        let entry = owner.and_then(|owner| owner.entry(option.name.as_str()));
        if row.was.is_some_and(|was| is_secret(&was.values)) && !entry.is_some_and(|entry| entry.secret) {
            violations.push(violation_at(
                index,
                OptionRow::NAME,
                "names a secret, which does not become an option that is none",
            ));
            continue;
        }
        if let Some(owner) = owner
            && entry.is_none()
            && !row.was.is_some_and(|was| is_unknown(was, option.name.as_str()))
        {
            violations.push(violation_at(index, OptionRow::NAME, no_option(owner, option.name.as_str())));
            continue;
        }
        let was = row.was.map(|was| OptionRow::from_values(was.values.clone())).transpose()?;
        let key = Value::Id(option.id.0);
        let open = |value: &OptionValue| {
            let (master, column) = (&writer.context.app.master, OptionRow::VALUE.column());
            open_secret(master, OPTION.table, column, &key, value.as_str())
        };
        let plain = open(&option.value);
        if let Some(was) = &was
            && open(&was.value) == plain
        {
            // an unchanged secret keeps its ciphertext
            option.value = was.value.clone();
        }
        *row.values =
            with_derived_fields(option, plain, was.as_ref(), entry, *subscription, kind)?.into_values();
    }
    dependencies::mark_contradictions(tx, rows)?;
    violations.extend(duplicate_paths(tx, rows)?);
    Ok(violations)
}

selectable! {
    /// A stored callback path.
    struct CallbackPath<'r> from "FROM option_value WHERE name = 'CallbackPath' AND value IN " {
        path: &'r str = "value",
        holder: Uuid = "id",
    }
}

/// The rows with the callback path of another instance: with one path for each, no provider gets the code of another one (mix-up, RFC
/// 9700, section 4.4).
fn duplicate_paths(tx: &mut Tx<'_>, rows: &[ProposedRow<'_>]) -> Result<Vec<Violation>, Problem> {
    let mut proposed = HashMap::<&str, Vec<(usize, Uuid)>>::new();
    for (index, row) in rows.iter().enumerate() {
        let path = row.text(OptionRow::VALUE).unwrap_or_default();
        let is_unchanged = row.was.is_some_and(|was| was.text(OptionRow::VALUE) == Some(path));
        // an invalid path is not served
        let is_path = entry_of(row.values).is_some_and(|entry| !entry.is_wrong(path));
        if row.text(OptionRow::NAME) == Some(ProviderOption::CALLBACK_PATH.name())
            && !path.is_empty()
            && is_path
            && !is_unchanged
        {
            let id = OptionRow::ID.field().id(row.values).unwrap_or_default();
            proposed.entry(path).or_default().push((index, id));
        }
    }
    let mut duplicates: Vec<usize> =
        proposed.values().flat_map(|same| same.iter().skip(1)).map(|(index, _)| *index).collect();
    let paths: Vec<&str> = proposed.keys().copied().collect();
    for chunk in paths.chunks(LIST) {
        let mut sql = Sql::new(CallbackPath::SELECT);
        sql.add_list(chunk.iter().map(|path| Value::from(*path)));
        tx.query(&sql.text, &sql.parameters, |row| {
            let CallbackPath { path, holder } = CallbackPath::read(row)?;
            let others = proposed.get(path).into_iter().flatten().filter(|(_, id)| *id != holder);
            duplicates.extend(others.map(|(index, _)| *index));
            Ok(())
        })?;
    }
    duplicates.sort_unstable();
    duplicates.dedup();
    let detail = "is the callback path of another instance: each must have its own";
    Ok(duplicates.into_iter().map(|index| violation_at(index, OptionRow::VALUE, detail)).collect())
}

/// Faults of a stored option that the release before accepted: its default is in effect instead.
pub fn refusals(tx: &mut Tx<'_>, values: &[Value]) -> Result<Vec<FieldFault>, Problem> {
    // a row that is marked already is no news of an upgrade; an unknown name may be a newer release's
    let (false, Some(entry)) = (OptionRow::HAS_CONFIGURATION_ERROR.get(values)?, entry_of(values)) else {
        return Ok(Vec::new());
    };
    let value = OptionRow::VALUE.text(values).unwrap_or_default();
    let why = if entry.is_wrong(value) {
        "is not in the form that the option has".to_owned()
    } else {
        match dependencies::contradicted(tx, values, entry)? {
            Some(other) => format!("contradicts the option {other}"),
            None => return Ok(Vec::new()),
        }
    };
    Ok(vec![(OptionRow::VALUE.field(), why)])
}

/// Whether a stored row has this name already, unknown to the catalogue: another release can have created it.
fn is_unknown(was: &StoredRow, name: &str) -> bool {
    let owner = was.text(OptionRow::OWNER_TYPE).and_then(Owner::of_type);
    was.text(OptionRow::NAME) == Some(name) && owner.is_none_or(|owner| owner.entry(name).is_none())
}

/// The fault of a name that is unknown to the catalogue.
fn no_option(owner: Owner, name: &str) -> String {
    let kind = owner.type_name();
    match nearest(name, owner.entries().map(|entry| entry.name)) {
        Some(known) => format!("must be the name of an option of {kind}: did you mean {known}?"),
        None => format!("must be the name of an option of {kind}"),
    }
}

fn with_derived_fields(
    mut option: OptionRow,
    plain: Option<String>,
    was: Option<&OptionRow>,
    entry: Option<&Entry>,
    subscription: Uuid,
    kind: &str,
) -> Result<OptionRow, Problem> {
    let name = |text: &str| Name::from_value(text.into());
    let (data_type, editor_type) = entry.map_or(("String", "Text"), |entry| entry.form.hints());
    let owner_type = name(kind)?;
    let is_unchanged = was.is_some_and(|was| {
        was.value == option.value && was.name == option.name && was.owner_type.as_ref() == Some(&owner_type)
    });
    // a stored value can have become invalid, since a release can change bounds; a secret has none
    if !is_unchanged || !entry.is_some_and(|entry| entry.secret) {
        let value = plain.unwrap_or_default();
        option.has_configuration_error = entry.is_some_and(|entry| entry.is_wrong(&value));
    }
    option.data_type = DataType::from_value(data_type.into())?;
    option.editor_type = EditorType::from_value(editor_type.into())?;
    option.subscription_id = Some(subscription);
    option.owner_type = Some(owner_type);
    Ok(option)
}
