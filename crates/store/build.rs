//! Lists the migrations, so that a migration is one file.

use std::{
    env,
    error::Error,
    fmt::Write as _,
    fs,
    path::{Path, PathBuf},
};

fn main() -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=build.rs");
    let folder = Path::new(&env::var("CARGO_MANIFEST_DIR")?).join("../../migrations").canonicalize()?;
    println!("cargo::rerun-if-changed={}", folder.display());
    let entries = fs::read_dir(&folder)?.collect::<Result<Vec<_>, _>>()?;
    let mut names: Vec<String> =
        entries.iter().filter_map(|entry| entry.file_name().into_string().ok()).collect();
    names.retain(|name| Path::new(name).extension().is_some_and(|extension| extension == "sql"));
    names.sort_unstable();
    let mut list = String::from("&[\n");
    for name in names {
        let stem = name.trim_end_matches(".sql");
        let version: i64 = stem.split('_').next().unwrap_or_default().parse()?;
        let path = folder.join(&name);
        writeln!(
            list,
            "Migration {{ version: {version}, name: {stem:?}, text: include_str!({:?}) }},",
            path.display().to_string()
        )?;
    }
    list.push_str("]\n");
    fs::write(PathBuf::from(env::var("OUT_DIR")?).join("migrations.rs"), list)?;
    Ok(())
}
