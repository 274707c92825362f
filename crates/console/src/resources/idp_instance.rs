//! Identity providers: user stores and external ones, their connection and their status.

mod provider;
mod provider_connect;
mod provider_trial;
mod status;

use chancery_resource::{Problem, settings::ProviderOption};

use crate::shell::{
    boxed::boxed,
    components::Card,
    directory::operation_name,
    presentation::{ANY, Acts, Item, OwnerOf, Page, Presentation, Settings},
    visit::Visit,
};

/// Presentation of identity providers.
pub static PRESENTATION: Presentation = Presentation {
    icon: "log-in",
    create: provider_connect::gallery_link,
    excluded: &[operation_name!("StartIdpInstanceTrial"), operation_name!("CompleteIdpInstanceTrial")],
    stores_secret: Some((operation_name!("CreateIdpInstanceScimToken"), ProviderOption::SCIM_TOKEN)),
    has_effect: |op, row| {
        // the settings of a user store are not confirmed
        !operation_name!("ConfirmIdpInstanceSettings").is_of(op) || provider_connect::of_row(row).is_some()
    },
    acts: |visit, item| {
        let Item { resource, row, here, protecting_role, .. } = item;
        let connect = provider_connect::act(visit, resource, row, here).filter(|_| protecting_role.is_none());
        Acts {
            before_settings: connect.into_iter().collect(),
            after_settings: provider_trial::act(visit, row, here).into_iter().collect(),
            ..Acts::default()
        }
    },
    cards: |visit, item| boxed(move || cards(visit, item)),
    settings: Some(Settings {
        field: "applyToIdpInstanceId",
        owner: OwnerOf::Row("idpFactoryType"),
        replaced: Some(|visit, key, row| boxed(move || provider::replaced_setting(visit, key, row))),
    }),
    pages: &[
        Page::at(&["connect"])
            .get(|visit, resource, _| boxed(move || provider_connect::gallery(visit, resource)))
            .post(|visit, resource, _| boxed(move || provider_connect::make(visit, resource))),
        Page::at(&[ANY, "connect"])
            .get(|visit, resource, [key, _]| boxed(move || provider_connect::show(visit, resource, key)))
            .post(|visit, resource, [key, _]| boxed(move || provider_connect::run(visit, resource, key))),
        Page::at(&[ANY, "trial"])
            .get(|visit, resource, [key, _]| boxed(move || provider_trial::show(visit, resource, key)))
            .post(|visit, resource, [key, _]| boxed(move || provider_trial::run(visit, resource, key))),
        Page::at(&[ANY, "sign-ins"])
            .get(|visit, resource, [key, _]| boxed(move || provider::show_sign_ins(visit, resource, key))),
        Page::at(&[ANY, "people"])
            .get(|visit, resource, [key, _]| boxed(move || provider::show_people(visit, resource, key))),
    ],
    ..Presentation::STANDARD
};

async fn cards(visit: &Visit<'_>, item: Item<'_>) -> Result<Vec<Card>, Problem> {
    let Item { resource, key, here, row, .. } = item;
    let works = status::provider(visit, key, here, row).await?;
    let addresses = boxed(|| provider::addresses(visit, resource, key, row)).await?;
    let provisioning = status::provisioning(visit, key, row).await?;
    let later = provider::later(visit, key, here, row);
    Ok(works.into_iter().chain(addresses).chain(provisioning).chain(later).collect())
}
