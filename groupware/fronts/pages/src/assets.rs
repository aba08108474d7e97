//! Style sheet, script, icon: compiled into the program, under names that change with their
//! content, so that browsers may cache them for ever.

use std::sync::LazyLock;

use axum::extract::Path;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http::header::{CACHE_CONTROL, CONTENT_TYPE, X_CONTENT_TYPE_OPTIONS};

use crate::grid::grid_rules;

/// A file that pages load.
pub(crate) struct Asset {
    /// Its path.
    pub(crate) path: String,
    media_type: &'static str,
    content: String,
}

impl Asset {
    fn new(name: &str, ending: &str, media_type: &'static str, content: String) -> Self {
        let hash = blake3::hash(content.as_bytes()).to_hex();
        Self {
            path: format!("/assets/{name}-{}.{ending}", &hash[..12]),
            media_type,
            content,
        }
    }
}

/// The style sheet, with generated rules appended.
pub(crate) static STYLE: LazyLock<Asset> = LazyLock::new(|| {
    let content = [include_str!("style.css"), &grid_rules()].concat();
    Asset::new("style", "css", "text/css; charset=utf-8", content)
});

/// The script. Every page works without it.
pub(crate) static SCRIPT: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("script.js").to_owned();
    Asset::new("script", "js", "text/javascript; charset=utf-8", content)
});

/// The icon.
pub(crate) static ICON: LazyLock<Asset> = LazyLock::new(|| {
    let content = include_str!("icon.svg").to_owned();
    Asset::new("icon", "svg", "image/svg+xml", content)
});

pub(crate) async fn serve(Path(name): Path<String>) -> Response {
    let asset = [&*STYLE, &*SCRIPT, &*ICON]
        .into_iter()
        .find(|asset| asset.path.strip_prefix("/assets/") == Some(&name));
    match asset {
        Some(asset) => (
            [
                (CACHE_CONTROL, "public, max-age=31536000, immutable"),
                (CONTENT_TYPE, asset.media_type),
                (X_CONTENT_TYPE_OPTIONS, "nosniff"),
            ],
            asset.content.as_str(),
        )
            .into_response(),
        // A page of an older version asks for it; it is reloaded soon.
        None => StatusCode::NOT_FOUND.into_response(),
    }
}
