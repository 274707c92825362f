//! The presentations of resources: each resource with its own presentation has one file.

mod access_pass;
mod application_group;
mod application_user;
mod audit_trail;
mod cert_store;
mod claim_rule;
mod client_app;
mod client_app_refusal;
mod client_app_secret;
mod custom_asset;
mod custom_view;
mod customer;
mod directory_refusal;
mod event_subscription;
mod group;
mod identity_replacement;
mod idp_instance;
mod mfa_instance;
mod option;
pub mod recovery_transaction;
mod role_assignment;
mod scim_token;
mod sign_in;
mod subscription;
mod tenant;
mod user;

use chancery_management as management;
use chancery_resource::Shape;
use chancery_userstore as store;

use crate::shell::{directory, presentation::Presentation};

/// The presentations, each with the shape of its resource.
static PRESENTATIONS: &[(&Shape, &Presentation)] = &[
    (&store::user::USER, &user::PRESENTATION),
    (&store::group::GROUP, &group::PRESENTATION),
    (&store::passkey::ACCESS_PASS, &access_pass::PRESENTATION),
    (&store::passkey::RECOVERY, &recovery_transaction::PRESENTATION),
    (&store::scim_token::SCIM_TOKEN, &scim_token::PRESENTATION),
    (&store::audit_trail::AUDIT_TRAIL, &audit_trail::OF_STORE),
    (&store::event_subscription::EVENT_SUBSCRIPTION, &event_subscription::PRESENTATION),
    (&management::application::APPLICATION_GROUP, &application_group::PRESENTATION),
    (&management::application::APPLICATION_USER, &application_user::PRESENTATION),
    (&management::audit_trail::AUDIT_TRAIL, &audit_trail::OF_CONFIGURATION),
    (&management::cert_store::CERT_STORE, &cert_store::PRESENTATION),
    (&management::claim_rule::CLAIM_RULE, &claim_rule::PRESENTATION),
    (&management::client_app::CLIENT_APP, &client_app::PRESENTATION),
    (&management::client_app::refusal::CLIENT_APP_REFUSAL, &client_app_refusal::PRESENTATION),
    (&management::client_app::secret::CLIENT_APP_SECRET, &client_app_secret::PRESENTATION),
    (&management::custom_asset::CUSTOM_ASSET, &custom_asset::PRESENTATION),
    (&management::custom_view::CUSTOM_VIEW, &custom_view::PRESENTATION),
    (&management::customer::CUSTOMER, &customer::PRESENTATION),
    (&management::directory_refusal::DIRECTORY_REFUSAL, &directory_refusal::PRESENTATION),
    (&management::event_subscription::EVENT_SUBSCRIPTION, &event_subscription::PRESENTATION),
    (&management::identity_replacement::IDENTITY_REPLACEMENT, &identity_replacement::PRESENTATION),
    (&management::idp_instance::IDP_INSTANCE, &idp_instance::PRESENTATION),
    (&management::mfa_instance::MFA_INSTANCE, &mfa_instance::PRESENTATION),
    (&management::option::OPTION, &option::PRESENTATION),
    (&management::role_assignment::ROLE_ASSIGNMENT, &role_assignment::PRESENTATION),
    (&management::sign_in::consent::SIGN_IN_CONSENT, &sign_in::CONSENT),
    (&management::sign_in::factor::SIGN_IN_FACTOR, &sign_in::FACTOR),
    (&management::sign_in::grant::SIGN_IN_GRANT, &sign_in::GRANT),
    (&management::sign_in::record::SIGN_IN_RECORD, &sign_in::RECORD),
    (&management::sign_in::session::SIGN_IN_SESSION, &sign_in::SESSION),
    (&management::subscription::SUBSCRIPTION, &subscription::PRESENTATION),
    (&management::tenant::TENANT, &tenant::PRESENTATION),
];

/// Fills the directory of resources with their presentations.
pub fn fill() {
    directory::fill(presentation);
}

/// The presentation of the resource of this shape.
fn presentation(shape: &Shape) -> &'static Presentation {
    let known = PRESENTATIONS.iter().find(|(known, _)| std::ptr::eq(*known, shape));
    known.map_or(&Presentation::STANDARD, |(_, presentation)| presentation)
}

#[cfg(test)]
mod tests {
    use super::{PRESENTATIONS, fill};
    use crate::shell::directory;

    #[test]
    fn each_presentation_is_of_one_resource() {
        fill();
        for (shape, _) in PRESENTATIONS {
            let own = directory::resources().iter().filter(|one| std::ptr::eq(one.shape, *shape));
            assert_eq!(own.count(), 1, "{}", shape.name);
        }
    }
}
