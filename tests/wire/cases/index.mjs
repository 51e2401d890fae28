// All cases by area, in the order in which they run.

import { chat } from "./chat.mjs";
import { client } from "./client.mjs";
import { control } from "./control.mjs";
import { overlap } from "./overlap.mjs";
import { tabs } from "./tabs.mjs";
import { tools } from "./tools.mjs";

export const areas = { client, chat, tools, control, overlap, tabs };
