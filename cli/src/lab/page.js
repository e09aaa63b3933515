"use strict";
(function () {
  const state = document.documentElement.dataset;
  window.addEventListener("error", (event) => { state.error = event.message; });
  const byId = (id) => document.getElementById(id);
  const made = (tag, properties) => Object.assign(document.createElement(tag), properties);
  // The answer as JSON; a refusal becomes an Error with the line that it is about.
  async function ask(place, body, signal) {
    const options = body === undefined ? {} :
      { method: "POST", headers: { "content-type": "application/json" }, body: JSON.stringify(body) };
    const response = await fetch(place, { ...options, signal });
    const text = await response.text();
    let answer = null;
    try { answer = JSON.parse(text); } catch { throw new Error(text || response.statusText); }
    if (!response.ok) throw Object.assign(new Error(answer.error), { line: answer.line });
    return answer;
  }

  // One editor with its runs.
  class Side {
    constructor(name, scenarios) {
      const part = byId("side").content.cloneNode(true);
      this.element = part.querySelector(".side");
      this.element.setAttribute("aria-label", `Run ${name}`);
      byId("sides").appendChild(part);
      this.scenarios = scenarios;
      this.at("text").setAttribute("aria-label", `Scenario ${name}, in TOML`);
      const menu = this.at("open");
      scenarios.forEach(({ name, paper }, i) => menu.appendChild(made("option", { value: i, textContent: paper ? `${paper}: ${name}` : name })));
      menu.addEventListener("change", () => this.open(Number(menu.value)));
      this.at("run").addEventListener("click", () => this.run());
      this.at("stop").addEventListener("click", () => this.running && this.running.abort());
      this.at("back").addEventListener("click", () => this.step(this.packet - 1));
      this.at("next").addEventListener("click", () => this.step(this.packet + 1));
      this.at("number").addEventListener("change", () => this.go(Number(this.at("number").value)));
      this.at("why").addEventListener("click", () => this.why());
      this.at("report").addEventListener("load", () => link());
      this.at("text").addEventListener("keydown", (event) => {
        if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) { event.preventDefault(); this.run(); }
      });
    }

    at(name) { return this.element.querySelector("." + name); }

    open(i) {
      this.at("open").value = String(i);
      this.name = this.scenarios[i].name;
      this.at("text").value = this.scenarios[i].text;
      this.at("state").replaceChildren(...withCode(this.scenarios[i].title));
      this.refuse("");
      this.forget();
    }

    // Hides what came of an earlier run: it is not of the scenario that is shown now.
    forget() {
      this.ran = null;
      this.at("results").hidden = true;
    }

    refuse(text) {
      this.at("errors").textContent = text;
      this.at("errors").hidden = text === "";
    }

    // Selects the line that an error is about.
    mark(line) {
      if (!line) return;
      const area = this.at("text");
      const lines = area.value.split("\n");
      const start = lines.slice(0, line - 1).reduce((sum, text) => sum + text.length + 1, 0);
      area.focus();
      area.setSelectionRange(start, start + (lines[line - 1] || "").length);
    }

    // Does what `work` says, with the buttons as they must be meanwhile.
    async busy(words, work) {
      if (this.running) return;
      this.running = new AbortController();
      this.at("run").disabled = true;
      this.at("stop").disabled = false;
      this.refuse("");
      const begun = performance.now();
      this.at("state").textContent = words;
      try {
        await work(this.running.signal);
        this.at("state").textContent = `Done in ${((performance.now() - begun) / 1000).toFixed(1)} s.`;
      } catch (error) {
        const stopped = error.name === "AbortError";
        this.at("state").textContent = stopped ? "Stopped." : "There is no result.";
        if (!stopped) this.refuse(error.message);
        this.mark(error.line);
        state.refused = error.message;
      }
      this.running = null;
      this.at("run").disabled = false;
      this.at("stop").disabled = true;
    }

    run() {
      return this.busy("Running …", async (signal) => {
        const text = this.at("text").value;
        this.forget();
        this.show(await ask("runs", { text, name: this.name }, signal), text);
        await this.step(1);
        state.ran = String(Number(state.ran || 0) + 1);
      });
    }

    // What came of a run, or of claims.
    show({ id, table, warnings }, text) {
      Object.assign(this, { id, ran: text, packets: [], first: 1, packet: 1 });
      this.at("results").hidden = false;
      this.at("answer").hidden = true;
      this.at("table").textContent = table + (warnings ? "\n" + warnings : "");
      this.at("packet").textContent = text === null ? "A publication's runs are many; open a scenario to see packets." : "";
      this.at("report").src = `runs/${id}/report`;
    }

    // Shows the packet that the reader asks for, or says why there is none.
    async go(to) {
      if (!Number.isSafeInteger(to) || to < 1) {
        this.refuse("A packet's number is a whole number from 1 on.");
      } else {
        this.refuse("");
        await this.step(to);
        if (this.packet !== to && this.at("errors").hidden) this.refuse(`The capture has no packet ${to}.`);
      }
      if (this.packet !== to) this.at("number").value = String(this.packet);
    }

    // Shows a packet of the capture by its number; the charts follow.
    async step(to) {
      if (this.ran === null || !(to >= 1)) return;
      if (to < this.first || to >= this.first + this.packets.length) {
        const first = Math.max(1, to - 20);
        let packets = [];
        try {
          packets = await ask(`runs/${this.id}/packets?from=${first}`);
        } catch (error) {
          this.refuse(error.message);
          state.refused = error.message;
        }
        if (!packets.some(({ line }) => line.number === to)) return;
        Object.assign(this, { packets, first });
      }
      const shown = this.packets.filter(({ line }) => line.number === to);
      if (shown.length === 0) return;
      this.packet = to;
      this.at("number").value = String(to);
      this.at("packet").textContent = shown.map(({ text }) => text).join("\n");
      this.time = Number(shown[0].line.time);
      state.packet = String(to);
      const inside = this.at("report").contentWindow;
      if (inside && inside.showMoment) inside.showMoment(this.time);
    }

    why() {
      if (this.ran === null) return;
      return this.busy("Asking why …", async (signal) => {
        const { text } = await ask("why", { text: this.ran, at: this.time }, signal);
        this.at("answer").textContent = text;
        this.at("answer").hidden = false;
        state.why = "1";
      });
    }

    claims(paper, claim) {
      return this.busy(`Reproducing ${claim} of ${paper} …`, async (signal) => {
        this.forget();
        this.show(await ask("reproduce", { paper, claim }, signal), null);
        state.reproduced = "1";
      });
    }
  }

  const sides = [];
  // Charts of two runs share their zoom.
  function link() {
    const plots = sides.map((side) => {
      const inside = side.at("report").contentDocument;
      return inside && inside.getElementById("charts");
    });
    if (!plots.every((plot) => plot && plot.on) || plots.length < 2) return;
    plots.forEach((plot, i) => {
      if (plot.dataset.linked) return;
      plot.dataset.linked = "1";
      plot.on("plotly_relayout", () => {
        const other = sides[1 - i].at("report").contentWindow;
        const target = other && other.document.getElementById("charts");
        if (!target || !target.layout || !byId("two").checked) return;
        const [range, has] = [plot.layout.xaxis.range, target.layout.xaxis.range];
        if (range.some((end, n) => Math.abs(end - has[n]) > 1e-9)) other.Plotly.relayout(target, { "xaxis.range": range.slice() });
      });
    });
  }

  // A text with what stands between two backticks as code.
  function withCode(text) {
    return text.split(/`([^`]*)`/).map((part, i) => (i % 2 ? made("code", { textContent: part }) : part));
  }

  function publications(papers, scenarios) {
    const place = byId("papers");
    for (const { name, title, citation, groups } of papers) {
      place.appendChild(made("h2")).append(...withCode(title));
      place.appendChild(made("p")).append(...withCode(citation));
      const row = place.appendChild(made("p", { className: "row" }));
      scenarios.forEach((scenario, i) => {
        if (scenario.paper !== name) return;
        const button = made("button", { type: "button", textContent: `Open ${scenario.name}` });
        button.addEventListener("click", () => sides[0].open(i));
        row.appendChild(button);
      });
      for (const [group, count] of groups) {
        const button = made("button", { type: "button", textContent: `Reproduce ${group} (${count} claims)` });
        button.addEventListener("click", () => sides[0].claims(name, group));
        row.appendChild(button);
      }
    }
  }

  async function begin() {
    const [scenarios, papers] = await Promise.all([ask("scenarios"), ask("papers")]);
    for (const name of ["A", "B"]) {
      sides.push(new Side(name, scenarios));
      sides.at(-1).open(0);
    }
    publications(papers, scenarios);
    const two = byId("two");
    const shown = () => {
      sides[1].element.hidden = !two.checked;
      byId("part").hidden = !two.checked;
    };
    two.addEventListener("change", shown);
    shown();
    byId("shelf").addEventListener("click", () => {
      const place = byId("papers");
      place.hidden = !place.hidden;
      byId("shelf").setAttribute("aria-expanded", String(!place.hidden));
    });
    byId("part").addEventListener("click", async () => {
      const place = byId("difference");
      place.hidden = false;
      place.textContent = "Comparing …";
      const [a, b] = sides.map((side) => side.at("text").value);
      try {
        place.textContent = (await ask("compare", { a, b })).text;
      } catch (error) {
        place.textContent = error.message;
      }
      state.compared = place.textContent.slice(0, 60);
    });
    state.ready = String(scenarios.length);
    // An address that ends in #outage or #outage,loss opens these scenarios and runs them.
    const wanted = decodeURIComponent(location.hash.slice(1)).split(",").filter(Boolean).slice(0, 2);
    two.checked = wanted.length === 2;
    shown();
    const found = wanted.map((name) => scenarios.findIndex((scenario) => scenario.name === name));
    await Promise.all(found.map((at, i) => at >= 0 && (sides[i].open(at), sides[i].run())));
  }
  begin().catch((error) => { state.error = error.message; });
})();
