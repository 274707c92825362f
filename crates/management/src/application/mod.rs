//! Platform users and groups, read-only: the synchronization of a user store writes them. Questionnaire answers of people of an
//! external identity provider are stored only here, so they are corrected and deleted here.

pub use chancery_application::{APPLICATION_GROUP, APPLICATION_USER};
use chancery_application::{APPLICATION_USER_PROFILE, ApplicationGroup, ApplicationUser};
use chancery_resource::{
    Action as A, Answer, Call, Custom, Method as M, Op,
    Permit::{self, ApplicationData, SubscriptionAdmin},
    Problem, Shape, Tx, find_row, list_of, list_where,
};

use crate::{idp_instance::IDP_INSTANCE, tenant::TENANT};

const fn op(
    name: &'static str,
    path: &'static str,
    shape: &'static Shape,
    action: A,
    summary: &'static str,
) -> Op {
    Op::new(name, M::Get, path, ApplicationData, shape, action, summary)
}

const fn user(name: &'static str, path: &'static str, action: A, summary: &'static str) -> Op {
    op(name, path, &APPLICATION_USER, action, summary)
}

const fn group(name: &'static str, path: &'static str, action: A, summary: &'static str) -> Op {
    op(name, path, &APPLICATION_GROUP, action, summary)
}

const ENTRIES: &str = "/ApplicationUser/{applicationUserId}/ApplicationUserProfile";
const ENTRY: &str = "/ApplicationUser/{applicationUserId}/ApplicationUserProfile/{key}";

const fn entry(
    name: &'static str,
    method: M,
    path: &'static str,
    permit: Permit,
    action: A,
    summary: &'static str,
) -> Op {
    Op::new(name, method, path, permit, &APPLICATION_USER_PROFILE, action, summary).added()
}

/// The operations on the entries of platform users of external providers.
pub static PROFILES: &[Op] = &[
    entry(
        "GetApplicationUserProfiles",
        M::Get,
        ENTRIES,
        ApplicationData,
        A::List,
        "Lists the entries of a platform user.",
    ),
    entry("GetApplicationUserProfile", M::Get, ENTRY, ApplicationData, A::Read, "Reads an entry."),
    entry(
        "UpdateApplicationUserProfile",
        M::Put,
        ENTRY,
        SubscriptionAdmin,
        A::Replace,
        "Replaces an entry's value.",
    ),
    entry(
        "DeleteApplicationUserProfile",
        M::Delete,
        ENTRY,
        SubscriptionAdmin,
        A::Delete,
        "Deletes an entry.",
    ),
];

const OF_TENANT: A = A::Custom(Custom::listing(of_tenant));

/// The operations on platform users and groups.
pub static OPERATIONS: &[Op] = &[
    user("GetApplicationUsers", "/ApplicationUser", A::List, "Lists the platform users."),
    user("GetApplicationUser", "/ApplicationUser/{id}", A::Read, "Reads a platform user."),
    user(
        "GetApplicationUsersByTenant",
        "/ApplicationUser/tenant/{tenantId}",
        OF_TENANT,
        "Lists the platform users of the identity provider instances of a tenant.",
    ),
    user(
        "GetApplicationUsersByIdpInstance",
        "/ApplicationUser/idpinstance/{idpInstanceId}",
        A::Custom(Custom::listing(|call, tx| {
            list_of(call, tx, &IDP_INSTANCE, 0, ApplicationUser::IDP_INSTANCE_ID)
        })),
        "Lists the platform users of an identity provider instance.",
    ),
    group("GetApplicationGroups", "/ApplicationGroup", A::List, "Lists the platform groups."),
    group("GetApplicationGroup", "/ApplicationGroup/{id}", A::Read, "Reads a platform group."),
    group(
        "GetApplicationGroupsByTenant",
        "/ApplicationGroup/tenant/{tenantId}",
        OF_TENANT,
        "Lists the platform groups of the identity provider instances of a tenant.",
    ),
    group(
        "GetApplicationGroupsByIdpInstance",
        "/ApplicationGroup/idpinstance/{idpInstanceId}",
        A::Custom(Custom::listing(|call, tx| {
            list_of(call, tx, &IDP_INSTANCE, 0, ApplicationGroup::IDP_INSTANCE_ID)
        })),
        "Lists the platform groups of an identity provider instance.",
    ),
];

fn of_tenant(call: &mut Call, tx: &mut Tx<'_>) -> Result<Answer, Problem> {
    let (tenant, _) = find_row(&call.context, tx, &TENANT, call.request.parameter(0))?;
    // EXISTS for each row, because the list is ordered by id, not by instance
    list_where(call, tx, &|sql| {
        sql.add(
            " AND EXISTS (SELECT 1 FROM tenant_idp_instance a JOIN idp_instance i ON i.rid = a.idp_instance_rid \
             WHERE i.id = t.idp_instance_id AND a.tenant_rid = ",
        );
        sql.add_bound(tenant);
        sql.add(")");
    })
}
