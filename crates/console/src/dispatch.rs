//! Which page is at an address below `/console`.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::{Method, Response};

use crate::{
    boxed::boxed,
    directory::{self, Resource},
    pages::{self, history::TRAIL},
    visit::{Visit, nothing_here},
};

/// The resource of identity providers, which have pages of their own.
const PROVIDERS: &str = "IdpInstance";

/// Answers by the page at an address below `/console`.
pub async fn dispatch(visit: &Visit<'_>, segments: &[&str]) -> Result<Response<AnswerBody>, Problem> {
    let is_post = visit.parts.method == Method::POST;
    match (segments, is_post) {
        ([], false) => boxed(|| pages::overview::show(visit)).await,
        (["me"], false) => boxed(|| pages::me::show(visit)).await,
        (["me"], true) => boxed(|| pages::me::keep(visit)).await,
        (["me", "session"], true) => boxed(|| pages::me::end(visit)).await,
        (["welcome"], false) => boxed(|| pages::welcome::show(visit)).await,
        (["welcome"], true) => boxed(|| pages::welcome::run(visit)).await,
        (["configuration"], false) => pages::configuration::show(visit),
        (["configuration"], true) => boxed(|| pages::configuration::run(visit)).await,
        (["configuration", "export"], false) => boxed(|| pages::configuration::export(visit)).await,
        (["settings"], false) => boxed(|| pages::all_settings::show(visit)).await,
        (["health"], false) => boxed(|| pages::health::show(visit)).await,
        (["set-by-others"], false) => boxed(|| pages::set_by_other::show(visit)).await,
        (["find"], false) => boxed(|| pages::find::show(visit)).await,
        (["CertStore", "new"], false) => pages::certificate::ask(visit),
        (["CertStore", "new"], true) => boxed(|| pages::certificate::run(visit)).await,
        (["ClaimRule", "try"], false) => boxed(|| pages::trial::show(visit)).await,
        (["ClaimRule", "try"], true) => boxed(|| pages::trial::run(visit)).await,
        (["CustomView", "try"], _) => boxed(|| pages::editor::show(visit)).await,
        (["CustomView", "preview"], _) => boxed(|| pages::editor::frame(visit)).await,
        (["store", _, "readiness"], false) => boxed(|| pages::readiness::show(visit)).await,
        (["store", _, "recovery"], false) => boxed(|| pages::recovery::list(visit)).await,
        (["store", _, "recovery", "new"], false) => boxed(|| pages::recovery::ask(visit)).await,
        (["store", _, "recovery", "new"], true) => boxed(|| pages::recovery::start(visit)).await,
        (["store", _, "recovery", id], false) => boxed(|| pages::recovery::show_one(visit, id)).await,
        (["store", _, "recovery", id, act], true) => boxed(|| pages::recovery::act(visit, id, act)).await,
        (["store", _, name, rest @ ..], _) => {
            let resource = directory::find(name, true).ok_or_else(nothing_here)?;
            boxed(|| of_resource(visit, resource, rest)).await
        }
        ([name, rest @ ..], _) => {
            let resource = directory::find(name, false).ok_or_else(nothing_here)?;
            boxed(|| of_resource(visit, resource, rest)).await
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
            boxed(|| pages::tree::show(visit, resource)).await
        }
        ([], false) => boxed(|| pages::list::show(visit, resource)).await,
        (["import"], false) if resource.name == "User" => pages::import::show(visit, resource),
        (["import"], true) if resource.name == "User" => boxed(|| pages::import::run(visit, resource)).await,
        (["batch"], true) => boxed(|| pages::batch::run(visit, resource)).await,
        (["new"], _) if resource.name == "ClientApp" => {
            let made = if is_post {
                boxed(|| pages::register::run(visit, resource)).await?
            } else {
                boxed(|| pages::register::show(visit, resource)).await?
            };
            match made {
                Some(page) => Ok(page),
                None if is_post => boxed(|| pages::new::create(visit, resource)).await,
                None => boxed(|| pages::new::show(visit, resource)).await,
            }
        }
        ([id], false) if resource.name == TRAIL => boxed(|| pages::entry::show(visit, resource, id)).await,
        ([id, "proof"], false) if resource.name == TRAIL => {
            boxed(|| pages::entry::proof(visit, resource, id)).await
        }
        (["act", name], false) => pages::act::ask_all(visit, resource, name),
        (["act", name], true) => boxed(|| pages::act::run_all(visit, resource, name)).await,
        ([key, "owned", name, rest @ ..], _) => {
            let owned = pages::owned::find(resource, name).ok_or_else(nothing_here)?;
            boxed(|| of_owned(visit, (resource, key, owned), rest)).await
        }
        (["new"], false) if resource.name == "Tenant" => boxed(|| pages::tenant::show(visit, resource)).await,
        (["new"], true) if resource.name == "Tenant" => boxed(|| pages::tenant::run(visit, resource)).await,
        (["new"], false) if resource.name == "RoleAssignment" => {
            boxed(|| pages::grant::show(visit, resource)).await
        }
        (["new"], true) if resource.name == "RoleAssignment" => {
            boxed(|| pages::grant::run(visit, resource)).await
        }
        (["connect"], false) if resource.name == PROVIDERS => {
            boxed(|| pages::provider_connect::gallery(visit, resource)).await
        }
        (["connect"], true) if resource.name == PROVIDERS => {
            boxed(|| pages::provider_connect::make(visit, resource)).await
        }
        (["new"], false) => boxed(|| pages::new::show(visit, resource)).await,
        (["new"], true) => boxed(|| pages::new::create(visit, resource)).await,
        ([key], false) if resource.name == pages::replacement::NAME => {
            boxed(|| pages::replacement::show(visit, resource, key)).await
        }
        ([key], false) => boxed(|| pages::item::show(visit, resource, key)).await,
        ([key], true) => boxed(|| pages::item::save(visit, resource, key)).await,
        ([key, "delete"], false) => boxed(|| pages::delete::ask(visit, resource, key)).await,
        ([key, "delete"], true) => boxed(|| pages::delete::run(visit, resource, key)).await,
        ([key, "tree"], false) if resource.name == "Group" => {
            boxed(|| pages::group::show(visit, resource, key)).await
        }
        ([key, "members"], false) if resource.name == "Group" => {
            boxed(|| pages::members::ask(visit, resource, key)).await
        }
        ([key, "members"], true) if resource.name == "Group" => {
            boxed(|| pages::members::check(visit, resource, key)).await
        }
        ([key, "relation", name], false) => boxed(|| pages::relate::show(visit, resource, (key, name))).await,
        ([key, "relation", name, act @ ("add" | "remove")], true) => {
            boxed(|| pages::relate::change(visit, resource, (key, name, act))).await
        }
        ([key, "history"], false) => boxed(|| pages::history::show(visit, resource, key)).await,
        ([key, "settings"], false) => boxed(|| pages::settings::show(visit, resource, key)).await,
        ([key, "settings"], true) => boxed(|| pages::settings::save(visit, resource, key)).await,
        ([key, "brand"], _) if resource.name == "Tenant" => {
            boxed(|| pages::editor::of_tenant(visit, key)).await
        }
        ([key, page @ ("rotation" | "safety" | "tokens"), more @ ..], _) if resource.name == "ClientApp" => {
            boxed(|| of_app(visit, resource, (key, page, more))).await
        }
        ([key, "deliveries"], false) if resource.name == pages::deliveries::NAME => {
            boxed(|| pages::deliveries::show(visit, resource, key)).await
        }
        ([key, "deliveries"], true) if resource.name == pages::deliveries::NAME => {
            boxed(|| pages::deliveries::send_again(visit, resource, key)).await
        }
        ([key, page @ ("trial" | "connect" | "sign-ins" | "people")], _) if resource.name == PROVIDERS => {
            boxed(|| of_provider(visit, resource, (key, page))).await
        }
        ([key, "rights"], false) => boxed(|| pages::rights::show(visit, resource, key)).await,
        ([key, act], false) => boxed(|| pages::act::ask(visit, resource, (key, act))).await,
        ([key, act], true) => boxed(|| pages::act::run(visit, resource, (key, act))).await,
        _ => Err(nothing_here()),
    }
}

/// A page of a client app alone.
async fn of_app(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, page, more): (&str, &str, &[&str]),
) -> Result<Response<AnswerBody>, Problem> {
    let is_post = visit.parts.method == Method::POST;
    match (page, more, is_post) {
        ("rotation", [], false) => boxed(|| pages::rotation::show(visit, resource, key)).await,
        ("rotation", [id], false) => boxed(|| pages::rotation::ask(visit, resource, (key, id))).await,
        ("rotation", [id], true) => boxed(|| pages::rotation::end(visit, resource, (key, id))).await,
        ("safety", [], false) => boxed(|| pages::safety::show(visit, resource, key)).await,
        ("safety", [], true) => boxed(|| pages::safety::set(visit, resource, key)).await,
        ("tokens", [], false) => boxed(|| pages::tokens::show(visit, resource, key)).await,
        ("tokens", [], true) => boxed(|| pages::tokens::run(visit, resource, key)).await,
        _ => Err(nothing_here()),
    }
}

/// A page of an identity provider alone.
async fn of_provider(
    visit: &Visit<'_>,
    resource: &'static Resource,
    (key, page): (&str, &str),
) -> Result<Response<AnswerBody>, Problem> {
    match (page, visit.parts.method == Method::POST) {
        ("trial", false) => boxed(|| pages::provider_trial::show(visit, resource, key)).await,
        ("trial", true) => boxed(|| pages::provider_trial::run(visit, resource, key)).await,
        ("connect", false) => boxed(|| pages::provider_connect::show(visit, resource, key)).await,
        ("connect", true) => boxed(|| pages::provider_connect::run(visit, resource, key)).await,
        (page, false) => boxed(|| pages::provider::show(visit, resource, (key, page))).await,
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
        ([], false) => boxed(|| pages::owned::show(visit, place)).await,
        (["add"], true) => boxed(|| pages::owned::add(visit, place)).await,
        (["remove"], true) => boxed(|| pages::owned::remove(visit, place)).await,
        ([id], false) => boxed(|| pages::owned::show_one(visit, place, id)).await,
        ([id], true) => boxed(|| pages::owned::save(visit, place, id)).await,
        ([id, act], false) => boxed(|| pages::owned::ask(visit, place, (id, act))).await,
        ([id, act], true) => boxed(|| pages::owned::run(visit, place, (id, act))).await,
        _ => Err(nothing_here()),
    }
}
