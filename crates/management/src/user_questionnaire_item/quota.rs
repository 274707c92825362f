//! Quota of items for one tenant: each sign-in looks for unanswered items.

use std::collections::BTreeMap;

use chancery_resource::{LIST, ProposedRow, Sql, StoreError, Tx, Violation, selectable};
use uuid::Uuid;

use super::UserQuestionnaireItem;
use crate::violation::violation_at;

/// The maximum number of items of a tenant.
const MAX_ITEMS: usize = 100;

selectable! {
    /// The number of items of a tenant.
    struct ItemCount from "FROM user_questionnaire_item WHERE tenant_id IN " {
        tenant: Uuid = "tenant_id",
        count: i64 = "count(*)",
    }
}

/// Reports new rows that exceed the quota of their tenant.
pub fn check(tx: &mut Tx<'_>, rows: &[ProposedRow<'_>]) -> Result<Vec<Violation>, StoreError> {
    let mut of_tenants = BTreeMap::<Uuid, Vec<usize>>::new();
    for (index, row) in rows.iter().enumerate().filter(|(_, row)| row.was.is_none()) {
        if let Some(tenant) = UserQuestionnaireItem::TENANT_ID.field().id(row.values) {
            of_tenants.entry(tenant).or_default().push(index);
        }
    }
    let mut present = BTreeMap::<Uuid, usize>::new();
    let tenants: Vec<Uuid> = of_tenants.keys().copied().collect();
    for chunk in tenants.chunks(LIST) {
        let mut sql = Sql::new(ItemCount::SELECT);
        sql.add_list(chunk.iter().copied().map(Into::into));
        sql.add(" GROUP BY tenant_id");
        tx.query(&sql.text, &sql.parameters, |row| {
            let found = ItemCount::read(row)?;
            present.insert(found.tenant, usize::try_from(found.count).unwrap_or(usize::MAX));
            Ok(())
        })?;
    }
    let mut violations = Vec::new();
    for (tenant, proposed) in of_tenants {
        let free = MAX_ITEMS.saturating_sub(present.get(&tenant).copied().unwrap_or_default());
        let detail = format!("has {MAX_ITEMS} items at most: delete some that nobody needs to answer");
        let exceeding = proposed.into_iter().skip(free);
        violations.extend(
            exceeding.map(|index| violation_at(index, UserQuestionnaireItem::TENANT_ID, detail.clone())),
        );
    }
    Ok(violations)
}
