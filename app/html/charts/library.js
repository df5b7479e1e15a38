// What the charts of reports need of Apache ECharts, as `globalThis.echarts` for the scripts in app/html/page.
import {init, use} from "echarts/core";
import {HeatmapChart, LineChart, ParallelChart, ScatterChart} from "echarts/charts";
import {
  DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent, ParallelComponent, TooltipComponent, VisualMapContinuousComponent,
} from "echarts/components";
import {CanvasRenderer} from "echarts/renderers";

use([
  HeatmapChart, LineChart, ParallelChart, ScatterChart, DataZoomComponent, GridComponent, LegendComponent, MarkLineComponent,
  ParallelComponent, TooltipComponent, VisualMapContinuousComponent, CanvasRenderer,
]);
globalThis.echarts = {init};
