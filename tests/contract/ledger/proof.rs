//! Proofs of a damaged tree.

use chancery_testkit::on_both_engines;

use super::{append_leaves, sql};

on_both_engines! {
    /// D: a tree with missing nodes gives no proof, and no empty one.
    async fn a_tree_with_gaps_gives_no_proof(world: World) {
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
        let paths = [&inclusion, &earlier, &whole, &checkpoint];
        for path in paths {
            world.admin.get(path).await.expect(200);
        }
        for (table, condition, broken) in [
            ("audit_node", "level = 0", &paths[..3]),
            ("audit_node", "level = 1", &paths[..3]),
            ("audit_node", "0 = 0", &paths[..3]),
            ("audit_leaf", "0 = 0", &paths[..1]),
            ("audit_tree", "0 = 0", &paths[..]),
        ] {
            let damage = [format!("CREATE TABLE kept AS SELECT * FROM {table}"), format!("DELETE FROM {table} WHERE store > 0 AND {condition}")];
            sql(&world, damage.map(|text| (text, vec![])).to_vec()).await;
            for path in broken {
                let problem = world.admin.get(path).await.problem(500, "internal");
                assert!(problem["detail"].as_str().unwrap().contains("log has the reason"), "{table} {condition} {path}");
            }
            let restore = [format!("DELETE FROM {table}"), format!("INSERT INTO {table} SELECT * FROM kept"), "DROP TABLE kept".to_owned()];
            sql(&world, restore.map(|text| (text, vec![])).to_vec()).await;
        }
        for path in paths {
            world.admin.get(path).await.expect(200);
        }
    }
}
