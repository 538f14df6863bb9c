//! One run, begun and driven until it ends, waits or is interrupted, and then printed.

use crate::afresh;
use crate::block_on::block_on;
use crate::failure::Exit;
use crate::output::Report;
use crate::progress::running_ms;
use crate::questions::{Questions, Reply};
use crate::recovery::digest;
use crate::signals::Signals;
use crate::ui::Ui;
use crate::watched::Watched;
use crate::words::command;
use selvedge_engine::Input;
use selvedge_host::text::one_line;
use selvedge_host::timeline::Rung;
use selvedge_host::{Asked, Begun, Error, Host};
use selvedge_runtime::{Clock, Controls, DriveError, Halt, SystemClock, Watcher};
use selvedge_store::StoreError;
use std::path::Path;
use std::sync::Arc;

/// Prepares what was asked for, begins with it and drives it; `told` says that it has begun. An interrupt before that leaves
/// nothing behind (C-05).
pub(crate) fn begin(
    host: &Host,
    asked: Asked,
    mut ui: Ui,
    told: impl FnOnce(&Begun, &Ui),
) -> Result<Exit, Error> {
    block_on(asked.bytes(), async {
        let signals = Signals::listen(&ui);
        let ready = tokio::select! {
            biased;
            () = signals.came() => return Err(Error::interrupted()),
            ready = host.prepare(asked) => ready?,
        };
        ui.secrets = ready.secrets().to_vec();
        if let Some(script) = ready.script() {
            ui.notice(&format!("note: scripted model: the replies come from {}", script.display()));
            if ready.script_changed {
                ui.notice("note: the script has changed since the run began");
            }
        }
        let run = host.begin(ready).await?;
        told(&run, &ui);
        Ok(Drive { ui: &ui, run }.go(&signals).await)
    })?
}

/// What becomes of a run after questions.
enum NextStep {
    /// Something was said, here or elsewhere, or a timer is due.
    GoOn,
    /// It waits.
    Leave,
}

/// A run that this process drives, and how it talks.
pub(crate) struct Drive<'a> {
    pub(crate) ui: &'a Ui,
    pub(crate) run: Begun,
}

impl Drive<'_> {
    /// Drives the run and prints it. A run that began is printed whatever happens to it (C-04).
    pub(crate) async fn go(mut self, signals: &Signals) -> Exit {
        let begun = running_ms();
        let mut controls = Controls::from(signals.stop.clone());
        let mut questions = Questions::new(self.ui, signals);
        let halt = loop {
            let halt = self.stretch(&questions, begun, &mut controls).await;
            if !matches!(halt, Ok(Halt::Waiting)) || !questions.any(&self.run.state) {
                break halt;
            }
            match self.ask(&mut questions, &mut controls).await {
                Ok(NextStep::GoOn) => {}
                Ok(NextStep::Leave) => break halt,
                Err(error) => break Err(error),
            }
        };
        let exit = match halt {
            Ok(Halt::Poisoned) => {
                // What a failed assertion left behind is no state: only the journal's fold is (E-03, E-17).
                self.reload();
                self.print();
                Exit::Internal
            }
            Ok(_) => {
                let exit = self.print();
                self.record();
                exit
            }
            Err(error) => self.broken(error),
        };
        self.run.close().await;
        exit
    }

    /// Asks one question after another. Each answer is recorded when it is given, so that it has its own time, and the run goes on with all
    /// of them.
    async fn ask(
        &mut self,
        questions: &mut Questions<'_>,
        controls: &mut Controls,
    ) -> Result<NextStep, DriveError> {
        let mut next = NextStep::Leave;
        questions.begin();
        loop {
            // Somebody may answer elsewhere, or cancel the run, or a timer come due, while a person is asked here (E-37, E-43).
            let reply = tokio::select! {
                biased;
                reply = questions.ask(&self.run.state) => reply,
                given = controls.wait_for_command() => given.map(|()| Reply::Elsewhere)?,
            };
            match reply {
                Reply::Answer(input) => {
                    if self.run.record(input).await? {
                        next = NextStep::GoOn;
                    }
                }
                Reply::Elsewhere => {
                    questions.cut_short();
                    return Ok(NextStep::GoOn);
                }
                Reply::None => return Ok(next),
            }
        }
    }

    /// Drives the run until it ends, or until nothing of it can go on without a person: while a person is asked here, there
    /// is no live view, and no call is under way.
    async fn stretch(
        &mut self,
        questions: &Questions<'_>,
        begun: i64,
        controls: &mut Controls,
    ) -> Result<Halt, DriveError> {
        let run = &mut self.run;
        let source = run.source.as_deref();
        // Nothing that was in flight is run again where a run is only cancelled (C-12).
        let again = !run.inputs.iter().any(|input| matches!(input, Input::Cancel));
        let watched = Watched::drive(self.ui, &run.id, &run.state, (source, begun), controls.stop(), again);
        run.driver.watcher = watched.clone().map(|watched| watched as Arc<dyn Watcher>);
        let halt = run.drive(controls).await;
        let asks = matches!(halt, Ok(Halt::Waiting)) && questions.any(&run.state);
        if let Some(watched) = watched {
            watched.close(self.ui, asks);
            if !self.ui.json {
                self.recovered(&watched.rungs());
            }
        }
        halt
    }

    /// Calls of library tools become tests. The run itself is what it is, whether or not they do.
    fn record(&self) {
        if let Err(failure) = self.run.record_calls(&self.ui.environment) {
            let why = failure.diagnostics.first().map(|first| first.message.clone()).unwrap_or_default();
            let message = format!("the calls of library tools were not recorded: {why}");
            self.ui.note(&format!("{}: {message}", self.ui.paint("1;33", "warning")));
        }
    }

    fn reload(&mut self) {
        if let Err(error) = self.run.reload() {
            crate::failure::print(&error, &Ui { json: false, ..self.ui.clone() });
        }
    }

    /// What was done about what failed, in short (D-22).
    fn recovered(&self, rungs: &[Rung]) {
        for line in digest(rungs, &self.run.id) {
            self.ui.note(&format!("{} {}", self.ui.paint("1;33", "recovery"), one_line(&line, 1000)));
        }
    }

    fn print(&self) -> Exit {
        if let Some(from) = &self.run.fork {
            let saved = afresh::saved(&self.run.state.saved());
            if !saved.is_empty() {
                self.ui.note(&format!("taken from {}, and not asked for again: {saved}", from.run));
            }
        }
        self.report().conclude(self.ui)
    }

    /// The journal could not be written: what is in it is the run, and it can be resumed.
    fn broken(&mut self, error: DriveError) -> Exit {
        let (text, run) = (Ui { json: false, ..self.ui.clone() }, self.run.id.clone());
        match error {
            DriveError::Store(error @ (StoreError::Vanished { .. } | StoreError::Emptied { .. })) => {
                return self.vanished(error, &text);
            }
            DriveError::Store(error @ StoreError::OutOfOrder { .. }) => {
                let whose = self.run.store.other_driver(&run).map(|pid| format!(" (process {pid})"));
                let failure = Error::from(error).help(&format!(
                    "leave the run to that process{}: {} shows it",
                    whose.unwrap_or_default(),
                    command(&["show", &run])
                ));
                crate::failure::print(&failure, &text);
                self.reload();
                if self.ui.json {
                    self.print();
                }
                return Exit::from(&failure);
            }
            _ => {}
        }
        self.reload();
        let failure = Error::from(error);
        crate::failure::print(&failure, &text);
        let resume = command(&["resume", &run]);
        self.ui.notice(&format!("run {run} keeps what was recorded; go on with: {resume}"));
        if self.ui.json {
            self.print();
        }
        Exit::from(&failure)
    }

    /// There is no record any more, or none where it was looked for: whatever the run came to, it has failed (E-44).
    fn vanished(&self, error: StoreError, text: &Ui) -> Exit {
        let run = &self.run.id;
        let help = match &error {
            // A file without the folder: what is in it is only whole with its log beside it.
            StoreError::Vanished { path, now: Some(now) } if path.parent().is_some_and(Path::exists) => {
                format!(
                    "what run {run} did until now is in there: move it back to {}, with what lies beside it, and {} goes on",
                    path.display(),
                    command(&["resume", run])
                )
            }
            StoreError::Vanished { now: Some(now), .. } => format!(
                "what run {run} did until now is in there: `selvedge resume {run} --state-dir {}` goes on with it",
                now.parent().unwrap_or(now).display()
            ),
            _ => format!(
                "the record of run {run} is lost, or the end of it: {} says what is left; what its tools did is done; leave \
                 the state folder alone while runs are under way",
                command(&["show", run])
            ),
        };
        let failure = Error::from(error).help(&help);
        crate::failure::print(&failure, text);
        if self.ui.json {
            let why = failure.diagnostics.first().map(|first| first.message.as_str()).unwrap_or_default();
            self.report().print_failed(why, self.ui);
        }
        Exit::from(&failure)
    }

    fn report(&self) -> Report<'_> {
        let Begun { store, id, state, graph, info, warnings, .. } = &self.run;
        let now = Some(SystemClock.now_ms());
        Report {
            store,
            run: id,
            state,
            scripted: info.scripted,
            warnings,
            graph,
            driven: true,
            warned: true,
            now,
        }
    }
}
