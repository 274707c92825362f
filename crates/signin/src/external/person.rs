//! Finds or creates the platform user of a sign-in by an external identity provider. Only instance and subject
//! identify the person, never an address.

use chancery_application::{
    ExternalInstance, ExternalProfile, ExternalSubject, create_external, update_external,
};
use chancery_resource::{Context, Problem, Tx};
use uuid::Uuid;

use super::claims::ProviderIdentity;
use crate::{
    client_app::OfferedProvider,
    person::{Identity, find},
};

/// The platform user of a subject at an instance, updated with these fields. If there is none, one is created if the
/// instance has `autoCreatePlatformUser` and the client app would admit a new person. `None` if there is none, or its
/// identity is not active.
pub fn find_or_create(
    context: &Context,
    tx: &mut Tx<'_>,
    provider: &OfferedProvider,
    may_be_new: bool,
    identity: &ProviderIdentity,
    profile: &ExternalProfile,
) -> Result<Option<Uuid>, Problem> {
    match find(tx, provider.id, &identity.subject)? {
        Identity::Active(person) => {
            update_external(context, tx, provider.id, person, profile.clone())?;
            Ok(Some(person))
        }
        Identity::Unknown if provider.creates_platform_users && may_be_new => {
            let instance = ExternalInstance { id: provider.id, subscription: provider.subscription };
            let subject =
                ExternalSubject { issuer: identity.issuer.clone(), subject: identity.subject.clone() };
            create_external(context, tx, instance, &subject, profile.clone()).map(Some)
        }
        Identity::Unknown | Identity::Inactive => Ok(None),
    }
}
