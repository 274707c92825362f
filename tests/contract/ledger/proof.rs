//! Proofs of a tree that somebody damaged.

use chancery_testkit::on_both_engines;

use super::{append_leaves, sql};

on_both_engines! {
    /// D: where the tree has lost something there is no proof, and none that is empty.
    async fn a_tree_with_gaps_proves_nothing(world: World) {
        let trail = world.path("/CustomAuditTrail");
        for name in ["a", "b", "c"] {
            world.user(name).await;
        }
        append_leaves(&world).await;
        let entry = world.audit(1).await[0]["id"].clone();
        let inclusion = format!("{trail}/{entry}/inclusion-proof");
        let consistency = format!("{trail}/consistency-proof");
        let (earlier, whole) = (format!("{consistency}?from=1&to=3"), format!("{consistency}?from=0"));
        let checkpoint = format!("{trail}/checkpoint");
        let asked = [&inclusion, &earlier, &whole, &checkpoint];
        for path in asked {
            world.admin.get(path).await.expect(200);
        }
        for (table, condition, broken) in [
            ("audit_node", "level = 0", &asked[..3]),
            ("audit_node", "level = 1", &asked[..3]),
            ("audit_node", "0 = 0", &asked[..3]),
            ("audit_leaf", "0 = 0", &asked[..1]),
            ("audit_tree", "0 = 0", &asked[..]),
        ] {
            let keep = [format!("CREATE TABLE kept AS SELECT * FROM {table}"), format!("DELETE FROM {table} WHERE store > 0 AND {condition}")];
            sql(&world, keep.map(|text| (text, vec![])).to_vec()).await;
            for path in broken {
                let problem = world.admin.get(path).await.problem(500, "internal");
                assert!(problem["detail"].as_str().unwrap().contains("log has the reason"), "{table} {condition} {path}");
            }
            let back = [format!("DELETE FROM {table}"), format!("INSERT INTO {table} SELECT * FROM kept"), "DROP TABLE kept".to_owned()];
            sql(&world, back.map(|text| (text, vec![])).to_vec()).await;
        }
        for path in asked {
            world.admin.get(path).await.expect(200);
        }
    }
}
