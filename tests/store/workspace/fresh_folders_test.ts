import { AppError } from "../../../base/errors.ts";
import { FreshFolders } from "../../../store/workspace/fresh_folders.ts";
import { expect } from "../../helpers/expect.ts";
import { within } from "../../helpers/deadline.ts";
import { type Fixture, refusal, testBoth, until } from "./fixture.ts";

/** Whether a promise has come to its end. */
function watch(promise: Promise<unknown>): () => boolean {
  let over = false;
  const end = () => void (over = true);
  promise.then(end, end);
  return () => over;
}

function exists(file: string): boolean {
  try {
    Deno.lstatSync(file);
    return true;
  } catch (error) {
    if (error instanceof Deno.errors.NotFound) return false;
    throw error;
  }
}

Deno.test("settled() waits for all that was announced in its workspace, and for nothing else", async () => {
  const folders = new FreshFolders();
  await folders.settled("eve");
  const [first, second] = [folders.announce("eve"), folders.announce("eve")];
  const settled = folders.settled("eve");
  const isOver = watch(settled);
  await folders.settled("bob");
  first();
  first();
  await folders.settled("bob");
  expect(isOver()).toBe(false);
  const later = folders.announce("eve");
  second();
  await settled;
  const isLaterOver = watch(folders.settled("eve"));
  await folders.settled("bob");
  expect(isLaterOver()).toBe(false);
  later();
  await folders.settled("eve");
});

testBoth(
  "uploads that all make folders at once do not wait for each other for good",
  async ({ put, read }) => {
    const meeting = Promise.withResolvers<void>();
    let arrived = 0;
    const names = Array.from({ length: 8 }, (_, index) => `made${index % 4}/deep${index}/file`);
    const puts = names.map((name) =>
      put(name, name, {
        beforeVisible: () => {
          // All have made their folders before the first goes on.
          if (++arrived === names.length) meeting.resolve();
          return meeting.promise;
        },
      })
    );
    await within("all uploads", Promise.all(puts));
    expect(await Promise.all(names.map(read))).toEqual(names);
  },
);

/** Holds an upload of `new/maker` when its folder is made; then begins one of `new/guest`, until it is visible. */
async function holdMaker({ put, at }: Fixture) {
  const made = Promise.withResolvers<void>();
  const held = Promise.withResolvers<void>();
  const maker = put("new/maker", "1", {
    beforeVisible: () => {
      made.resolve();
      return held.promise;
    },
  });
  await made.promise;
  const guest = put("new/guest", "2");
  const isGuestOver = watch(guest);
  await until(() => exists(at("new/guest")), "the guest's file");
  // Several syncs of the same folder: by then the guest's own is over, too.
  using folder = await Deno.open(at("new"));
  for (let round = 0; round < 5; round++) await folder.sync();
  return { maker, guest, isGuestOver, held };
}

testBoth("an upload into a folder that is not durable yet is answered after its maker", async (fixture) => {
  const { maker, guest, isGuestOver, held } = await holdMaker(fixture);
  expect(isGuestOver()).toBe(false);
  held.resolve();
  await within("the guest", guest);
  expect((await maker).created).toBe(true);
  expect(await fixture.read("new/guest")).toBe("2");
});

testBoth("an upload into a folder whose maker fails is answered, and the folder stays", async (fixture) => {
  const { maker, guest, isGuestOver, held } = await holdMaker(fixture);
  expect(isGuestOver()).toBe(false);
  held.reject(new AppError("unavailable", "Cannot spend this token now"));
  expect(await refusal(() => maker)).toBe("unavailable");
  expect((await within("the guest", guest)).created).toBe(true);
  expect([...Deno.readDirSync(fixture.at("new"))].map(({ name }) => name)).toEqual(["guest"]);
});
