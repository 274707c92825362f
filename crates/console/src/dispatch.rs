//! Which page is at an address below `/console`.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::{Method, Response};

use crate::{
    directory::{self, Resource},
    pages::{self, history::TRAIL},
    visit::{Visit, nothing_here},
};

/// Answers by the page at an address below `/console`.
pub async fn dispatch(visit: &Visit<'_>, segments: &[&str]) -> Result<Response<AnswerBody>, Problem> {
    let is_post = visit.parts.method == Method::POST;
    match (segments, is_post) {
        ([], false) => pages::overview::show(visit).await,
        (["me"], false) => pages::me::show(visit).await,
        (["me"], true) => pages::me::keep(visit).await,
        (["me", "session"], true) => pages::me::end(visit).await,
        (["welcome"], false) => pages::welcome::show(visit).await,
        (["welcome"], true) => pages::welcome::run(visit).await,
        (["configuration"], false) => pages::configuration::show(visit),
        (["configuration"], true) => pages::configuration::run(visit).await,
        (["configuration", "export"], false) => pages::configuration::export(visit).await,
        (["settings"], false) => pages::all_settings::show(visit).await,
        (["health"], false) => pages::health::show(visit).await,
        (["set-by-others"], false) => Box::pin(pages::set_by_other::show(visit)).await,
        (["find"], false) => pages::find::show(visit).await,
        (["CertStore", "new"], false) => pages::certificate::ask(visit),
        (["CertStore", "new"], true) => pages::certificate::run(visit).await,
        (["ClaimRule", "try"], false) => pages::trial::show(visit).await,
        (["ClaimRule", "try"], true) => pages::trial::run(visit).await,
        (["CustomView", "try"], _) => pages::editor::show(visit).await,
        (["CustomView", "preview"], _) => pages::editor::frame(visit).await,
        (["store", _, "readiness"], false) => pages::readiness::show(visit).await,
        (["store", _, "recovery"], false) => pages::recovery::list(visit).await,
        (["store", _, "recovery", "new"], false) => pages::recovery::ask(visit).await,
        (["store", _, "recovery", "new"], true) => pages::recovery::start(visit).await,
        (["store", _, "recovery", id], false) => pages::recovery::show_one(visit, id).await,
        (["store", _, "recovery", id, act], true) => pages::recovery::act(visit, id, act).await,
        (["store", _, name, rest @ ..], _) => {
            let resource = directory::find(name, true).ok_or_else(nothing_here)?;
            of_resource(visit, resource, rest).await
        }
        ([name, rest @ ..], _) => {
            let resource = directory::find(name, false).ok_or_else(nothing_here)?;
            of_resource(visit, resource, rest).await
        }
        _ => Err(nothing_here()),
    }
}

async fn of_resource(
    visit: &Visit<'_>,
    resource: &'static Resource,
    rest: &[&str],
) -> Result<Response<AnswerBody>, Problem> {
    let is_post = visit.parts.method == Method::POST;
    match (rest, is_post) {
        ([], false) if resource.name == "Customer" && pages::tree::is_asked_for(visit) => {
            pages::tree::show(visit, resource).await
        }
        ([], false) => pages::list::show(visit, resource).await,
        (["import"], false) if resource.name == "User" => pages::import::show(visit, resource),
        (["import"], true) if resource.name == "User" => pages::import::run(visit, resource).await,
        (["batch"], true) => pages::batch::run(visit, resource).await,
        (["new"], _) if resource.name == "ClientApp" => {
            let made = if is_post {
                pages::register::run(visit, resource).await?
            } else {
                pages::register::show(visit, resource).await?
            };
            match made {
                Some(page) => Ok(page),
                None if is_post => pages::new::create(visit, resource).await,
                None => pages::new::show(visit, resource).await,
            }
        }
        ([id], false) if resource.name == TRAIL => pages::entry::show(visit, resource, id).await,
        ([id, "proof"], false) if resource.name == TRAIL => pages::entry::proof(visit, resource, id).await,
        (["act", name], false) => pages::act::ask_all(visit, resource, name),
        (["act", name], true) => pages::act::run_all(visit, resource, name).await,
        ([key, "owned", name, rest @ ..], _) => {
            let owned = pages::owned::find(resource, name).ok_or_else(nothing_here)?;
            of_owned(visit, (resource, key, owned), rest).await
        }
        (["new"], false) if resource.name == "Tenant" => pages::tenant::show(visit, resource).await,
        (["new"], true) if resource.name == "Tenant" => pages::tenant::run(visit, resource).await,
        (["new"], false) if resource.name == "RoleAssignment" => pages::grant::show(visit, resource).await,
        (["new"], true) if resource.name == "RoleAssignment" => pages::grant::run(visit, resource).await,
        (["new"], false) => pages::new::show(visit, resource).await,
        (["new"], true) => pages::new::create(visit, resource).await,
        ([key], false) if resource.name == pages::replacement::NAME => {
            pages::replacement::show(visit, resource, key).await
        }
        ([key], false) => pages::item::show(visit, resource, key).await,
        ([key], true) => pages::item::save(visit, resource, key).await,
        ([key, "delete"], false) => pages::delete::ask(visit, resource, key).await,
        ([key, "delete"], true) => pages::delete::run(visit, resource, key).await,
        ([key, "tree"], false) if resource.name == "Group" => pages::group::show(visit, resource, key).await,
        ([key, "members"], false) if resource.name == "Group" => {
            pages::members::ask(visit, resource, key).await
        }
        ([key, "members"], true) if resource.name == "Group" => {
            pages::members::check(visit, resource, key).await
        }
        ([key, "relation", name], false) => pages::relate::show(visit, resource, (key, name)).await,
        ([key, "relation", name, act @ ("add" | "remove")], true) => {
            pages::relate::change(visit, resource, (key, name, act)).await
        }
        ([key, "history"], false) => pages::history::show(visit, resource, key).await,
        ([key, "settings"], false) => pages::settings::show(visit, resource, key).await,
        ([key, "settings"], true) => pages::settings::save(visit, resource, key).await,
        ([key, "brand"], _) if resource.name == "Tenant" => pages::editor::of_tenant(visit, key).await,
        ([key, "rotation"], false) if resource.name == "ClientApp" => {
            pages::rotation::show(visit, resource, key).await
        }
        ([key, "rotation", id], false) if resource.name == "ClientApp" => {
            pages::rotation::ask(visit, resource, (key, id)).await
        }
        ([key, "rotation", id], true) if resource.name == "ClientApp" => {
            pages::rotation::end(visit, resource, (key, id)).await
        }
        ([key, "deliveries"], false) if resource.name == pages::deliveries::NAME => {
            pages::deliveries::show(visit, resource, key).await
        }
        ([key, "deliveries"], true) if resource.name == pages::deliveries::NAME => {
            pages::deliveries::send_again(visit, resource, key).await
        }
        ([key, "safety"], false) if resource.name == "ClientApp" => {
            pages::safety::show(visit, resource, key).await
        }
        ([key, "safety"], true) if resource.name == "ClientApp" => {
            pages::safety::set(visit, resource, key).await
        }
        ([key, "tokens"], _) if resource.name == "ClientApp" => {
            pages::tokens::answer(visit, resource, key, is_post).await
        }
        ([key, "trial"], false) if resource.name == "IdpInstance" => {
            pages::provider_trial::show(visit, resource, key).await
        }
        ([key, "trial"], true) if resource.name == "IdpInstance" => {
            pages::provider_trial::run(visit, resource, key).await
        }
        ([key, "rights"], false) => pages::rights::show(visit, resource, key).await,
        ([key, act], false) => pages::act::ask(visit, resource, (key, act)).await,
        ([key, act], true) => pages::act::run(visit, resource, (key, act)).await,
        _ => Err(nothing_here()),
    }
}

async fn of_owned(
    visit: &Visit<'_>,
    place: pages::owned::Place<'_>,
    rest: &[&str],
) -> Result<Response<AnswerBody>, Problem> {
    let is_post = visit.parts.method == Method::POST;
    match (rest, is_post) {
        ([], false) => pages::owned::show(visit, place).await,
        (["add"], true) => pages::owned::add(visit, place).await,
        (["remove"], true) => pages::owned::remove(visit, place).await,
        ([id], false) => pages::owned::show_one(visit, place, id).await,
        ([id], true) => pages::owned::save(visit, place, id).await,
        ([id, act], false) => pages::owned::ask(visit, place, (id, act)).await,
        ([id, act], true) => pages::owned::run(visit, place, (id, act)).await,
        _ => Err(nothing_here()),
    }
}
