//! Who a person from elsewhere is: instance and subject alone say that, and no address.

use chancery_application::{ExternalInstance, ExternalSubject, create_external, update_external};
use chancery_resource::{Context, Problem, Tx};
use uuid::Uuid;

use super::claims::Told;
use crate::{
    application::OfferedProvider,
    person::{Identity, find},
};

/// The platform user of a subject at an instance, brought up to date. One is created where there is none yet and the instance lets it.
/// and the app would admit somebody new. `None`: nobody whom both admit.
///
/// # Errors
/// Those of the store.
pub fn find_or_create(
    context: &Context,
    tx: &mut Tx<'_>,
    (provider, may_be_new): (&OfferedProvider, bool),
    told: &Told,
) -> Result<Option<Uuid>, Problem> {
    match find(tx, provider.id, &told.subject)? {
        Identity::Counts(person) => {
            update_external(context, tx, (provider.id, person), told.profile())?;
            Ok(Some(person))
        }
        Identity::None if provider.creates_platform_users && may_be_new => {
            let instance = ExternalInstance { id: provider.id, subscription: provider.subscription };
            let whose = ExternalSubject { issuer: told.issuer.clone(), subject: told.subject.clone() };
            create_external(context, tx, instance, &whose, told.profile()).map(Some)
        }
        Identity::None | Identity::Over => Ok(None),
    }
}
