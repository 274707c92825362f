//! Writes every page, with every sample and in every language, to a folder.
//!
//! `cargo run -p chancery-presentation --example pages -- FOLDER`

use std::{env, error::Error, fs, path::Path};

use chancery_presentation::{language::Language, shipped, view};
use serde_json::{Map, Value};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = env::args().nth(1).ok_or("usage: pages FOLDER")?;
    fs::create_dir_all(&folder)?;
    let samples = Path::new(env!("CARGO_MANIFEST_DIR")).join("samples");
    for name in shipped::names() {
        let text = fs::read_to_string(samples.join(format!("{name}.json")))?;
        let contexts: Map<String, Value> = serde_json::from_str(&text)?;
        for (sample, context) in &contexts {
            for language in Language::ALL {
                let page = view::render(name, context, language, &|_| None)?;
                fs::write(format!("{folder}/{name}-{sample}-{}.html", language.tag()), page)?;
            }
        }
    }
    Ok(())
}
