//! Makes the realm of a runtime: the engine, the functions of the host, the modules of the API and of the script.

use std::rc::Rc;

use rquickjs::loader::{ImportAttributes, Loader, Resolver};
use rquickjs::module::Declared;
use rquickjs::{
    ArrayBuffer, Context, Ctx, Exception, Function, IntoJs, Module, Object, Persistent, Result,
    Value,
};

use super::budget::{Budget, Limits};
use super::exception;
use crate::api;
use crate::program::Program;
use crate::shared::{EngineValues, Shared};
use crate::thrown::{Thrown, ThrownKind};

/// The name of the module that all others import.
const PRELUDE: &str = "$$";
/// The name of the module that makes what scripts find without an import.
const GLOBALS: &str = "$$globals";
/// The name of the module that imports those of the script.
const MAIN: &str = "$$main";

/// The functions of the prelude that play turns.
pub(super) struct Functions {
    pub(super) begin: Persistent<Function<'static>>,
    pub(super) resume: Persistent<Function<'static>>,
    pub(super) fail: Persistent<Function<'static>>,
    pub(super) describe: Persistent<Function<'static>>,
    pub(super) end_call: Persistent<Function<'static>>,
}

/// The engine and its context.
type Engine = (rquickjs::Runtime, Context);

/// Makes an engine with these limits, which loads the modules of the program.
pub(super) fn engine(
    program: &Program,
    limits: Limits,
    budget: &Rc<Budget>,
) -> std::result::Result<Engine, Thrown> {
    let engine = rquickjs::Runtime::new().map_err(|_| no_memory())?;
    engine.set_memory_limit(usize::try_from(limits.memory).unwrap_or(usize::MAX));
    engine.set_max_stack_size(limits.stack);
    // Reference counting frees everything except cycles; see `Runtime::watch`.
    engine.set_gc_threshold(usize::MAX);
    let asked = Rc::clone(budget);
    engine.set_interrupt_handler(Some(Box::new(move || asked.must_end())));
    engine.set_loader(Names, Modules(program.clone()));
    let context = Context::full(&engine).map_err(|_| no_memory())?;
    Ok((engine, context))
}

/// Names of modules are whole.
struct Names;

impl Resolver for Names {
    fn resolve<'js>(
        &mut self,
        _ctx: &Ctx<'js>,
        _base: &str,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<String> {
        Ok(name.to_owned())
    }
}

/// The modules of the script and of the API.
struct Modules(Program);

impl Loader for Modules {
    fn load<'js>(
        &mut self,
        ctx: &Ctx<'js>,
        name: &str,
        _attributes: Option<ImportAttributes<'js>>,
    ) -> Result<Module<'js, Declared>> {
        let text = match name.strip_prefix(exception::MODULE) {
            Some(own) => self.0.modules().find(|(name, _)| *name == own),
            None => api::modules().iter().copied().find(|(own, _)| *own == name),
        };
        match text {
            Some((_, text)) => declared(ctx, name, text),
            None => Err(rquickjs::Error::new_loading(name)),
        }
    }
}

fn no_memory() -> Thrown {
    Thrown {
        message: "the engine could not allocate memory".to_owned(),
        kind: ThrownKind::Memory,
        stack: Vec::new(),
    }
}

/// Makes garbage that only the cycle collector frees, which notes in the budget that it ran.
pub(super) fn watch(ctx: &Ctx<'_>, budget: &Rc<Budget>) -> Result<()> {
    struct Freed(Rc<Budget>);
    impl Drop for Freed {
        fn drop(&mut self) {
            self.0.note_collection();
        }
    }
    let freed = Freed(Rc::clone(budget));
    let cycle = Object::new(ctx.clone())?;
    let held = move || {
        let _ = &freed;
    };
    cycle.set("held", Function::new(ctx.clone(), held)?)?;
    cycle.set("own", cycle.clone())
}

/// Evaluates the prelude, the API, and the modules of the script.
pub(super) fn prepare<'js>(
    ctx: &Ctx<'js>,
    program: &Program,
    shared: &Rc<Shared>,
) -> Result<Functions> {
    let host = Object::new(ctx.clone())?;
    own_functions(ctx, &host, shared)?;
    let own = Rc::clone(shared);
    let initialise = move |on: bool| {
        own.initialising.set(on);
        own.budget.load(on);
    };
    host.set("initialise", Function::new(ctx.clone(), initialise)?)?;
    ctx.globals().set("$host", host.clone())?;
    let prelude = evaluated(ctx, PRELUDE, include_str!("prelude.js"))?;
    *shared.engine.borrow_mut() = Some(EngineValues {
        place: Persistent::save(ctx, prelude.get::<_, Object>("$$at")?),
        data: None,
    });
    api::install(ctx, &host, shared)?;
    ctx.globals().set("__ENV", variables(ctx, program)?)?;
    evaluated(ctx, GLOBALS, "import 'plimsoll/internal/globals';")?;
    evaluated(ctx, MAIN, program.main())?;
    let freeze: Function = prelude.get("$freeze")?;
    freeze.call::<_, ()>((host,))?;
    let function = |name: &str| -> Result<Persistent<Function<'static>>> {
        Ok(Persistent::save(ctx, prelude.get::<_, Function>(name)?))
    };
    Ok(Functions {
        begin: function("begin")?,
        resume: function("resume")?,
        fail: function("fail")?,
        describe: function("describe")?,
        end_call: function("endCall")?,
    })
}

fn declared<'js>(ctx: &Ctx<'js>, name: &str, text: &str) -> Result<Module<'js, Declared>> {
    Module::declare(ctx.clone(), name, text)
}

/// Evaluates a module and returns its namespace.
fn evaluated<'js>(ctx: &Ctx<'js>, name: &str, text: &str) -> Result<Object<'js>> {
    let (module, promise) = declared(ctx, name, text)?.eval()?;
    promise.finish::<Value>()?;
    module.namespace()
}

fn variables<'js>(ctx: &Ctx<'js>, program: &Program) -> Result<Object<'js>> {
    let all = Object::new(ctx.clone())?;
    for (name, value) in &program.environment().0 {
        all.set(name.as_str(), value.as_str())?;
    }
    Ok(all)
}

/// The functions of the host that the prelude calls.
fn own_functions<'js>(ctx: &Ctx<'js>, host: &Object<'js>, shared: &Rc<Shared>) -> Result<()> {
    let own = Rc::clone(shared);
    host.set("random", Function::new(ctx.clone(), move || own.random())?)?;
    let own = Rc::clone(shared);
    host.set("now", Function::new(ctx.clone(), move || own.now_ms())?)?;
    let own = Rc::clone(shared);
    let vu = move || own.fact(|facts| facts.vu_in_test as f64).unwrap_or(0.0);
    host.set("vu", Function::new(ctx.clone(), vu)?)?;
    let own = Rc::clone(shared);
    let iteration = move || {
        own.fact(|facts| facts.iteration_of_user as f64)
            .unwrap_or(0.0)
    };
    host.set("iteration", Function::new(ctx.clone(), iteration)?)?;
    let own = Rc::clone(shared);
    let jobs = move |ctx: Ctx<'js>| own.run_jobs(&ctx);
    host.set("jobs", Function::new(ctx.clone(), jobs)?)?;
    let own = Rc::clone(shared);
    let text = move |ctx: Ctx<'js>, base: String, name: String| -> Result<Value<'js>> {
        let bytes = opened(&ctx, &own, &base, &name)?;
        String::from_utf8_lossy(bytes).as_ref().into_js(&ctx)
    };
    host.set("openText", Function::new(ctx.clone(), text)?)?;
    let own = Rc::clone(shared);
    let bytes = move |ctx: Ctx<'js>, base: String, name: String| -> Result<ArrayBuffer<'js>> {
        ArrayBuffer::new_copy(ctx.clone(), opened(&ctx, &own, &base, &name)?)
    };
    host.set("openBytes", Function::new(ctx.clone(), bytes)?)
}

fn opened<'s>(ctx: &Ctx<'_>, shared: &'s Shared, base: &str, name: &str) -> Result<&'s [u8]> {
    let found = shared.opened(base, name);
    found.map_err(|problem| Exception::throw_message(ctx, &problem))
}
