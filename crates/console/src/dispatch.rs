//! Routing below `/console`.

use chancery_resource::Problem;
use chancery_web::AnswerBody;
use http::{Method, Response};

use crate::{
    pages,
    resources::recovery_transaction::recovery,
    shell::{
        boxed::boxed,
        directory::{self, Resource},
        find,
        visit::{Visit, not_found},
    },
};

/// Routes a request below `/console` to its page.
pub async fn dispatch(visit: &Visit<'_>, segments: &[&str]) -> Result<Response<AnswerBody>, Problem> {
    let is_post = visit.parts.method == Method::POST;
    match (segments, is_post) {
        ([], false) => boxed(|| pages::overview::show(visit)).await,
        (["me"], false) => boxed(|| pages::me::show(visit)).await,
        (["me"], true) => boxed(|| pages::me::save(visit)).await,
        (["me", "session"], true) => boxed(|| pages::me::end(visit)).await,
        (["welcome"], false) => boxed(|| pages::welcome::show(visit)).await,
        (["welcome"], true) => boxed(|| pages::welcome::run(visit)).await,
        (["configuration"], false) => pages::configuration::show(visit),
        (["configuration"], true) => boxed(|| pages::configuration::run(visit)).await,
        (["configuration", "export"], false) => boxed(|| pages::configuration::export(visit)).await,
        (["settings"], false) => boxed(|| pages::all_settings::show(visit)).await,
        (["health"], false) => boxed(|| pages::health::show(visit)).await,
        (["set-by-others"], false) => boxed(|| pages::set_by_other::show(visit)).await,
        (["find"], false) => boxed(|| find::show(visit)).await,
        (["store", _, "readiness"], false) => boxed(|| pages::readiness::show(visit)).await,
        (["store", _, "recovery"], false) => boxed(|| recovery::list(visit)).await,
        (["store", _, "recovery", "new"], false) => boxed(|| recovery::show_form(visit)).await,
        (["store", _, "recovery", "new"], true) => boxed(|| recovery::start(visit)).await,
        (["store", _, "recovery", id], false) => boxed(|| recovery::show_one(visit, id)).await,
        (["store", _, "recovery", id, act], true) => boxed(|| recovery::act(visit, id, act)).await,
        (["store", _, name, rest @ ..], _) => {
            let resource = directory::find(name, true).ok_or_else(not_found)?;
            boxed(|| of_resource(visit, resource, rest)).await
        }
        ([name, rest @ ..], _) => {
            let resource = directory::find(name, false).ok_or_else(not_found)?;
            boxed(|| of_resource(visit, resource, rest)).await
        }
        _ => Err(not_found()),
    }
}

async fn of_resource(
    visit: &Visit<'_>,
    resource: &'static Resource,
    rest: &[&str],
) -> Result<Response<AnswerBody>, Problem> {
    let is_post = visit.parts.method == Method::POST;
    // a page of the resource has precedence over the standard page
    if let Some((answer, keys)) = resource.presentation.page(rest, is_post) {
        return answer(visit, resource, keys).await;
    }
    match (rest, is_post) {
        ([], false) => boxed(|| pages::list::show(visit, resource)).await,
        (["batch"], true) => boxed(|| pages::batch::run(visit, resource)).await,
        (["act", name], false) => pages::act::show_all(visit, resource, name),
        (["act", name], true) => boxed(|| pages::act::run_all(visit, resource, name)).await,
        ([key, "owned", name, rest @ ..], _) => {
            let owned = pages::owned::find(resource, name).ok_or_else(not_found)?;
            boxed(|| of_owned(visit, pages::owned::OwnedPath { resource, key, owned }, rest)).await
        }
        (["new"], false) => boxed(|| pages::new::show(visit, resource)).await,
        (["new"], true) => boxed(|| pages::new::create(visit, resource)).await,
        ([key], false) => boxed(|| pages::item::show(visit, resource, key)).await,
        ([key], true) => boxed(|| pages::item::save(visit, resource, key)).await,
        ([key, "delete"], false) => boxed(|| pages::delete::show(visit, resource, key)).await,
        ([key, "delete"], true) => boxed(|| pages::delete::run(visit, resource, key)).await,
        ([key, "relation", name], false) => boxed(|| pages::relate::show(visit, resource, key, name)).await,
        ([key, "relation", name, act @ ("add" | "remove")], true) => {
            boxed(|| pages::relate::change(visit, resource, key, name, act)).await
        }
        ([key, "history"], false) => boxed(|| pages::history::show(visit, resource, key)).await,
        ([key, "settings"], false) => boxed(|| pages::settings::show(visit, resource, key)).await,
        ([key, "settings"], true) => boxed(|| pages::settings::save(visit, resource, key)).await,
        ([key, "rights"], false) => boxed(|| pages::rights::show(visit, resource, key)).await,
        ([key, act], false) => boxed(|| pages::act::show(visit, resource, key, act)).await,
        ([key, act], true) => boxed(|| pages::act::run(visit, resource, key, act)).await,
        _ => Err(not_found()),
    }
}

async fn of_owned(
    visit: &Visit<'_>,
    owned_path: pages::owned::OwnedPath<'_>,
    rest: &[&str],
) -> Result<Response<AnswerBody>, Problem> {
    let is_post = visit.parts.method == Method::POST;
    match (rest, is_post) {
        ([], false) => boxed(|| pages::owned::show(visit, owned_path)).await,
        (["add"], true) => boxed(|| pages::owned::add(visit, owned_path)).await,
        (["remove"], true) => boxed(|| pages::owned::remove(visit, owned_path)).await,
        ([id], false) => boxed(|| pages::owned::show_one(visit, owned_path, id)).await,
        ([id], true) => boxed(|| pages::owned::save(visit, owned_path, id)).await,
        ([id, act], false) => boxed(|| pages::owned::show_act(visit, owned_path, id, act)).await,
        ([id, act], true) => boxed(|| pages::owned::run(visit, owned_path, id, act)).await,
        _ => Err(not_found()),
    }
}
