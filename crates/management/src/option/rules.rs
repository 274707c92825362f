//! An option's rules: one target, a form for its value, and a target that is there.

use chancery_record::{FieldType as _, Name, Record as _, Value};
use chancery_resource::{Breach, Call, Problem, ProblemKind, Proposed, Rules, Said, Scope, Sql};
use chancery_settings::Owner;
use chancery_store::{Row, Tx};
use uuid::Uuid;

use super::{OPTION, OptionRow};

impl OptionRow {
    const TARGETS: [&'static str; 3] =
        ["apply_to_idp_instance_id", "apply_to_mfa_instance_id", "apply_to_tenant_id"];

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
    fn adjust(&mut self, was: Option<&Self>, said: &Said<'_>) {
        let Some(was) = was else { return };
        let given: Vec<bool> = Self::TARGETS
            .iter()
            .zip(self.targets())
            .map(|(column, target)| said.says(column) && target.is_some())
            .collect();
        if !given.contains(&true) {
            // a body that names no target keeps it
            self.set_targets(was.targets());
        } else if given.iter().filter(|given| **given).count() == 1 {
            // one that names another clears the rest
            let mut targets = self.targets();
            for (target, given) in targets.iter_mut().zip(given) {
                *target = target.filter(|_| given);
            }
            self.set_targets(targets);
        }
    }

    fn check(&self, wrong: &mut Vec<(&'static str, String)>) {
        if self.targets().iter().flatten().count() != 1 {
            let detail = "exactly one of applyToIdpInstanceId, applyToMfaInstanceId and applyToTenantId is to be given";
            wrong.push(("apply_to_idp_instance_id", detail.to_owned()));
        }
    }
}

/// The kind of owner, as `owner_type` keeps it.
fn owner_of(kind: Option<&str>) -> Option<Owner> {
    match kind? {
        "Tenant" => Some(Owner::Tenant),
        kind => Owner::of_idp_type(kind),
    }
}

/// Whether a row holds a secret: what the catalogue says of its name.
pub fn is_secret(values: &[Value]) -> bool {
    let text = |column| match OPTION.place(column).and_then(|place| values.get(place)) {
        Some(Value::Text(text)) => Some(text.as_str()),
        _ => None,
    };
    let owner = owner_of(text("owner_type"));
    owner.zip(text("name")).and_then(|(owner, name)| owner.entry(name)).is_some_and(|entry| entry.secret)
}

/// Finds the targets within the caller's scope, and what follows from their kind.
pub fn find_targets(call: &Call, tx: &mut Tx<'_>, rows: &mut [Proposed<'_>]) -> Result<Vec<Breach>, Problem> {
    let mut breaches = Vec::new();
    for (place, row) in rows.iter_mut().enumerate() {
        let mut option = OptionRow::from_values(row.values.clone())?;
        let found = if let Some(id) = option.apply_to_idp_instance_id {
            find(call, tx, "idp_instance", "idp_type", id)?
        } else if let Some(id) = option.apply_to_tenant_id {
            find(call, tx, "tenant", "'Tenant'", id)?
        } else {
            None
        };
        let Some((subscription, kind)) = found else {
            let column =
                OptionRow::TARGETS.into_iter().zip(option.targets()).find(|(_, target)| target.is_some());
            breaches.push(Breach {
                row: place,
                kind: ProblemKind::InvalidRequest,
                column: column.map_or("name", |(column, _)| column),
                detail: "names nothing here".to_owned(),
            });
            continue;
        };
        let was = row.was.map(|was| OptionRow::from_values(was.values.clone())).transpose()?;
        let name = |text: &str| Name::from_value(text.into());
        let entry = owner_of(Some(&kind)).and_then(|owner| owner.entry(option.name.as_str()));
        if row.was.is_some_and(|was| is_secret(&was.values)) && !entry.is_some_and(|entry| entry.secret) {
            breaches.push(Breach {
                row: place,
                kind: ProblemKind::InvalidRequest,
                column: "name",
                detail: "names a secret, which does not become an option that is none".to_owned(),
            });
            continue;
        }
        let (data_type, editor_type) = entry.map_or(("String", "Text"), |entry| entry.form.hints());
        let is_kept = was.as_ref().is_some_and(|was| was.value == option.value && was.name == option.name);
        if !is_kept {
            let value = option.value.as_str();
            option.has_configuration_error =
                entry.is_some_and(|entry| (entry.mandatory && value.is_empty()) || !entry.form.fits(value));
        }
        option.data_type = name(data_type)?;
        option.editor_type = name(editor_type)?;
        option.subscription_id = Some(subscription);
        option.owner_type = Some(name(&kind)?);
        *row.values = option.into_values();
    }
    Ok(breaches)
}

/// The subscription and kind of a target, when the caller's scope has it.
fn find(
    call: &Call,
    tx: &mut Tx<'_>,
    table: &str,
    kind: &str,
    id: Uuid,
) -> Result<Option<(Uuid, String)>, Problem> {
    let sql = Sql::new(format!(
        "SELECT t.subscription_id, {kind}, s.customer_id FROM {table} t \
         JOIN subscription s ON s.id = t.subscription_id WHERE t.id = "
    ))
    .bind(id);
    let read = |row: &Row<'_>| Ok((row.id(0)?, row.text(1)?.to_owned(), row.id(2)?));
    let found = tx.one(&sql.text, &sql.parameters, read)?;
    Ok(found
        .filter(|(subscription, _, customer)| covers(&call.scope, *subscription, *customer))
        .map(|(subscription, kind, _)| (subscription, kind)))
}

fn covers(scope: &Scope, subscription: Uuid, customer: Uuid) -> bool {
    match scope {
        Scope::Everything => true,
        Scope::Parts { customers, subscriptions, .. } => {
            customers.contains(&customer) || subscriptions.contains(&subscription)
        }
        Scope::Store(_) => false,
    }
}
