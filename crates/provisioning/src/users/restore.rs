//! Restores a user in quarantine whom a directory creates again.

use chancery_management::sign_in::factor;
use chancery_record::{Value, fold};
use chancery_resource::settings::UserStoreOption;
use chancery_resource::{Call, Problem, Sql, StoredRow, Tx, load, load_hidden, selectable};
use chancery_scim::{Fields, ScimError, ScimType};
use chancery_userstore::{
    quarantine_restore::restore_without_credentials,
    user::{USER, User},
};
use serde_json::Value as Serde;
use uuid::Uuid;

use crate::{
    form::Form,
    reach::{add_reach, directory, forbid_administrator},
    render::{fields_in, resource_of},
    write::{self, changes, confirm},
};

selectable! {
    /// A user in quarantine.
    struct HiddenUser from "FROM user_account t WHERE t.store = " {
        id: Uuid = "t.id",
        external_id: Option<String> = "t.external_unique_identifier",
    }
}

/// Restores the user in quarantine who has this name, within the directory's reach: with the new attributes,
/// and reset.
///
/// # Errors
/// The name belongs to a user with another id at the directory.
pub fn restore(
    call: &mut Call,
    tx: &mut Tx<'_>,
    form: Form,
    fields: &Fields,
) -> Result<Option<StoredRow>, Problem> {
    let text = |name: &str| fields.fields.get(name).and_then(Serde::as_str).map(str::to_owned);
    let Some(name) = text(User::LOGIN_NAME.field().wire()) else { return Ok(None) };
    let mut sql = Sql::new(HiddenUser::SELECT)
        .bind(call.context.scope.store())
        .push(" AND t.login_name_key = ")
        .bind(fold(&name))
        .push(" AND t.quarantined_on IS NOT NULL");
    add_reach(&mut sql, form, &call.context, "t");
    let found = tx.one(&sql.text, &sql.parameters, HiddenUser::read)?;
    let Some(HiddenUser { id, external_id }) = found else { return Ok(None) };
    let requested = text(User::EXTERNAL_UNIQUE_IDENTIFIER.field().wire());
    let differ = matches!((&external_id, &requested), (Some(stored), Some(requested)) if stored != requested);
    if differ || !call.context.scope.of_store()?.options.get(UserStoreOption::SCIM_CREATE_RESTORES) {
        let detail = if differ {
            "userName is kept by a deleted user with another externalId, until that one is gone for good"
        } else {
            "userName is kept by a deleted user, until that one is gone for good or restored"
        };
        return Err(ScimError::new(ScimType::Uniqueness, detail).into());
    }
    forbid_administrator(&call.context, tx, form, id)?;
    let hidden = load_hidden(&call.context, tx, &USER, Value::Id(id))?;
    restore_without_credentials(&call.context, tx, hidden)?;
    forget_second_factors(call, tx, id)?;
    let row = load(&call.context, tx, form.shape, None, Value::Id(id))?;
    let was = resource_of(call, tx, form, &row, None)?;
    let mut body = changes(&fields_in(form, &was)?, fields);
    let owner = directory(&call.context).owner.map(|owner| owner.to_string());
    body.insert(User::SCIM_OWNER.field().wire().into(), owner.into());
    confirm(call, &mut body);
    write::change(call, tx, form, &row, body).map(Some)
}

/// Removes the second factors of the user's persons: a returning user may be somebody else, or have another
/// telephone.
fn forget_second_factors(call: &mut Call, tx: &mut Tx<'_>, user: Uuid) -> Result<(), Problem> {
    let store = call.context.scope.of_store()?.id;
    let text = "SELECT u.id FROM application_identity i JOIN application_user u ON u.rid = i.application_user_rid \
        WHERE i.idp_instance_id = ?1 AND i.subject = ?2";
    let mut persons = Vec::new();
    tx.query(text, &[store.into(), user.to_string().into()], |row| {
        persons.push(row.id(0)?);
        Ok(())
    })?;
    call.context.on_configuration(|context| {
        persons.into_iter().try_for_each(|person| factor::remove_of(context, tx, person))
    })
}
