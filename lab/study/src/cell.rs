//! All settings of a study as written, and the cells that they are worked out in.
//!
//! Settings may name factors (`users: "{{ users }}"`), so their values are known only per cell;
//! loading a study works out every cell once, so that a plan finds no new errors.

use lab_language::connect::{self, ConnectSpec, HttpVersion};
use lab_language::{CellError, Optional};

use crate::demand::LoadTemplate;
use crate::model::{Cell, VARIANT};
use crate::parameters::ParametersTemplate;
use crate::system::SystemsTemplate;

/// The settings of a study, still with references to factors.
#[derive(Debug, Clone)]
pub(crate) struct CellTemplate {
    pub(crate) system: SystemsTemplate,
    pub(crate) load: LoadTemplate,
    pub(crate) parameters: ParametersTemplate,
}

impl CellTemplate {
    /// How users connect to the system in `cell`: the system's settings, and the load's.
    pub(crate) fn connect(&self, cell: &Cell) -> Result<ConnectSpec, CellError> {
        let mut connect = self.system.of(cell).reach.spec(cell)?;
        let http = connect.http;
        let connections = |text: &str| connect::load_connections(text, http);
        if let Some(connections) = self.load.connections.value(cell, connections)? {
            connect.http.shared = Some(connections);
        }
        if self.load.over_http2 && connect.http.shared.is_some() {
            connect.http.version = HttpVersion::Two;
        }
        connect.sources.clone_from(&self.load.sources);
        Ok(connect)
    }
}

/// Returns true if they differ only in the variant.
pub(crate) fn are_partners(one: &Cell, other: &Cell) -> bool {
    let rest = |cell: &Cell| {
        let mut rest = cell.clone();
        rest.remove(VARIANT);
        rest
    };
    one != other && rest(one) == rest(other)
}

/// Every combination of levels, in file order: the last factor changes fastest.
pub(crate) fn cells(matrix: &[crate::model::Factor]) -> Vec<Cell> {
    let mut cells = vec![Cell::new()];
    for factor in matrix {
        cells = cells
            .iter()
            .flat_map(|cell| {
                factor.levels.iter().map(move |level| {
                    let mut cell = cell.clone();
                    cell.insert(factor.name.clone(), level.clone());
                    cell
                })
            })
            .collect();
    }
    cells
}
