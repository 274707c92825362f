//! The owners of settings, and who may see and change them.

use chancery_management::{idp_instance::IDP_INSTANCE, option::OPTION};

use super::{
    directory::{self, Resource},
    navigation::position,
    visit::Visit,
};

/// The resources with settings.
pub fn owners() -> Vec<&'static Resource> {
    let all = directory::resources().iter();
    let mut owners: Vec<&Resource> = all.filter(|one| one.presentation.settings.is_some()).collect();
    owners.sort_by_key(|one| position(one.name));
    owners
}

/// Whether the user may see the settings of a resource.
pub fn are_offered(visit: &Visit<'_>, resource: &Resource) -> bool {
    field_of(resource).is_some() && options().is_some_and(|options| visit.may(options.list).is_some())
}

/// Whether the user may change them.
pub fn can_be_set(visit: &Visit<'_>, resource: &Resource) -> bool {
    are_offered(visit, resource) && options().is_some_and(|options| visit.may(options.patch).is_some())
}

/// The field of an option that refers to its owner.
pub fn field_of(resource: &Resource) -> Option<&'static str> {
    resource.presentation.settings.as_ref().map(|settings| settings.field)
}

/// The resource of options.
pub fn options() -> Option<&'static Resource> {
    directory::of_shape(&OPTION)
}

/// The URL of the settings of the selected store, if the user may see them.
pub fn store_settings(visit: &Visit<'_>) -> Option<String> {
    let owner = directory::of_shape(&IDP_INSTANCE).filter(|owner| are_offered(visit, owner))?;
    let store = visit.visitor.store.as_ref()?;
    Some(format!("{}/{}/settings", visit.address(owner), store.scope.id))
}
