// What do our words mean? One sentence each, shown where the word stands.

export const GLOSSARY = {
  machine: "The object in the cluster that asks for one server and says what became of it.",
  instance: "The server itself, as the cloud knows it.",
  node: "The server as Kubernetes knows it: where pods run.",
  pool: "A set of machines made from one template: a MachineSet or a MachineDeployment.",
  zone: "A part of the cloud's region with power and network of its own.",
  pod: "The smallest thing that Kubernetes runs: one or a few containers.",
  budget: "A PodDisruptionBudget: how many pods of a workload must stay up while others are moved.",
  drain: "Moving all pods away from a node before it is worked on.",
  maintenance:
    "Work on a machine that takes it out of service for a while: a reboot, a stop and start, or a replacement.",
  window: "A time in which maintenance may begin.",
  freeze: "A time in which no maintenance may begin, whatever the windows say.",
  deadline: "When the cloud acts by itself, if we have not by then.",
  safeStart: "The last moment to begin and still be done before the deadline.",
  policy: "A MaintenancePolicy: windows, freezes, budgets and answers for a part of the machines.",
  drift: "A change that was made behind the cluster's back: a stop, a reboot, a deletion in the cloud.",
  approval: "Some work begins only after a person has said yes.",
  postpone: "Work begins no earlier than the time that you give.",
  pause: "Nothing that is our own choice begins while a pause holds. Work under way is finished.",
  whatIf: "The operator plans again with your change, and shows the difference. Nothing is saved.",
  condition: "One statement about an object that is true, false or unknown, with the reason.",
  late: "It cannot be done before its deadline within the windows.",
  blocked: "It cannot be given a time, until something changes.",
  due: "It may begin now.",
  underWay: "It has begun, and will be finished.",
  leftAlone: "The policy says that nothing is done.",
  hold: "A mark on a machine: nobody touches it until the mark is gone.",
  cron: "Five fields: minute, hour, day of the month, month, day of the week. 0 2 * * 6 is Saturdays at 02:00.",
  rrule: "A repeat rule as calendars use it (RFC 5545): FREQ=WEEKLY;BYDAY=SA.",
  event: "What the cloud announces for an instance: a retirement, a reboot, a stop.",
} as const;

export type Word = keyof typeof GLOSSARY;
